"""One attempt as a target sees it, and the one protocol of all targets that need a handler."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

from executor.core.command import Json
from executor.core.outcome import Result
from executor.core.state import OpenRun
from scheduler.core.instant import format_instant


@dataclass(frozen=True, slots=True)
class Order:
    """Do this once. Everything an attempt needs, and nothing of where it came from."""

    job_id: str
    run_id: str
    scheduled_at: str
    attempt: int
    idempotency_key: str
    timeout_s: float
    target: Json
    payload: object

    def headers(self) -> dict[str, str]:
        """What every target is told about the attempt, whatever carries it."""
        return {
            "Idempotency-Key": self.idempotency_key,
            "X-Job-Id": self.job_id,
            "X-Scheduled-At": self.scheduled_at,
            "X-Attempt": str(self.attempt),
            "traceparent": traceparent(self.run_id, self.attempt),
        }


class Target(Protocol):
    """Does the work of an attempt. Runs on the event loop; must not block it."""

    async def attempt(self, order: Order) -> Result:
        """What came of it. Time-outs and cancellation are the caller's."""
        ...

    async def close(self) -> None:
        """Release what it holds. Idempotent."""
        ...


def order_of(run: OpenRun) -> Order:
    """The current attempt of a run."""
    command = run.command
    return Order(
        job_id=command.job_id,
        run_id=command.run_id,
        scheduled_at=format_instant(command.scheduled_ms),
        attempt=run.attempt,
        idempotency_key=run.idempotency_key,
        timeout_s=command.timeout_ms / 1000,
        target=command.target,
        payload=command.payload,
    )


def traceparent(run_id: str, attempt: int) -> str:
    """Trace context of an attempt: one trace a run, one span an attempt, derived from both.

    Source: W3C Trace Context, section 3.2.

    >>> traceparent("a@1970-01-01T00:00:00.000Z", 1)[:3]
    '00-'
    """
    trace = hashlib.sha256(run_id.encode()).hexdigest()[:32]
    span = hashlib.sha256(f"{run_id}/{attempt}".encode()).hexdigest()[:16]
    return f"00-{trace}-{span}-01"
