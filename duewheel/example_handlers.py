"""A handler for the example job ``example-python``: what a user's own looks like."""

from executor.handlers import RunContext


async def greet(ctx: RunContext) -> None:
    """Say hello on the executor's standard output; an exception would be tried again."""
    name = ctx.payload.get("name") if isinstance(ctx.payload, dict) else None
    print(f"hello {name}, this is attempt {ctx.attempt} of {ctx.run_id}", flush=True)
