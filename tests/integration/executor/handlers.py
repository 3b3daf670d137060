"""Handlers the tests let executors call."""

from executor.handlers import Fail, RunContext


async def greet(ctx: RunContext) -> None:
    """Succeeds."""
    print(f"greeted {ctx.run_id} {ctx.attempt}", flush=True)


def refuse(ctx: RunContext) -> Fail:
    """Fails for good, in a thread."""
    return Fail(f"no {ctx.payload}")
