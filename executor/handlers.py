"""What a Python handler is given and may answer; the only module user code needs to import.

    from executor.handlers import Fail, RunContext

    async def settle(ctx: RunContext) -> Fail | None:
        if ctx.payload is None:
            return Fail("a payload is needed")
        ...

Anything else that is returned means success; an exception means failure, tried again.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunContext:
    """One attempt of a run.

    Attributes:
        scheduled_at: nominal instant, RFC 3339; with ``job_id`` the run's identity.
        attempt: from 1; grows with each try, so it fences off earlier ones that still linger.
        idempotency_key: the same for all attempts; what an effect should be keyed by.
        payload: the definition's JSON.
    """

    job_id: str
    run_id: str
    scheduled_at: str
    attempt: int
    idempotency_key: str
    payload: object


@dataclass(frozen=True, slots=True)
class Retry:
    """Not done: try again, not earlier than ``after_seconds`` from now."""

    after_seconds: float = 0
    reason: str = "the handler asked for another attempt"


@dataclass(frozen=True, slots=True)
class Fail:
    """Not done, and no further attempt will help: to the dead letters."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """No longer wanted: the run ends ``cancelled``."""

    reason: str
