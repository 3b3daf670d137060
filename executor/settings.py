"""Settings of an executor, from the environment; the Kafka part is the scheduler's own."""

from typing import Self

from pydantic import Field, model_validator

from scheduler.contract.topics import DEFAULT_QUEUE
from scheduler.settings import SESSION_MS_MIN, KafkaSettings


class ExecutorSettings(KafkaSettings):
    """Settings of an executor.

    Attributes:
        queue: whose runs it executes; declared in topics.yaml.
        handlers: modules whose public functions may be called as ``module:function``, separated
            by commas; handlers declared as entry points need no mention.
        max_in_flight: attempts under way or waiting here; beyond it nothing more is claimed.
        handler_threads_max: handlers that are no coroutines, at a time.
        http_connections_max: open connections, to all targets together.
        drain_seconds: after SIGTERM, time for what is under way to finish.
        inherit_seconds: time an open run of a former owner is given before its next attempt.
        retry_here_seconds: next attempts nearer than this wait in this process, others in the
            scheduler's wheel.
        session_timeout_ms: silence after which an executor's partitions go to others.
        heartbeat_interval_ms: under a third of the session.
        transaction_timeout_ms: after which the broker ends a dead executor's transaction.
        transaction_inputs_max: commands, results and due attempts in one transaction.
        call_deadline_seconds: a Kafka call that takes longer ends the process.
    """

    queue: str = Field(default=DEFAULT_QUEUE, min_length=1, max_length=100)
    handlers: str = ""
    max_in_flight: int = Field(default=200, ge=1, le=100_000)
    handler_threads_max: int = Field(default=16, ge=1, le=1_000)
    http_connections_max: int = Field(default=100, ge=1, le=10_000)
    drain_seconds: float = Field(default=20.0, ge=0, le=3_600)
    inherit_seconds: float = Field(default=30.0, ge=0, le=3_600)
    retry_here_seconds: float = Field(default=5.0, ge=0, le=60)
    session_timeout_ms: int = Field(default=10_000, ge=SESSION_MS_MIN, le=1_800_000)
    heartbeat_interval_ms: int = Field(default=500, ge=100)
    transaction_timeout_ms: int = Field(default=3_000, ge=1_000)
    transaction_inputs_max: int = Field(default=1_000, ge=1, le=10_000)
    call_deadline_seconds: int = Field(default=30, ge=5)

    def handler_modules(self) -> tuple[str, ...]:
        """The modules named in ``handlers``."""
        names = (name.strip() for name in self.handlers.split(","))
        return tuple(name for name in names if name)

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if 3 * self.heartbeat_interval_ms > self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms {self.heartbeat_interval_ms} must be at most a third of "
                f"session_timeout_ms {self.session_timeout_ms}"
            )
        if self.transaction_timeout_ms >= self.session_timeout_ms:
            raise ValueError(
                f"transaction_timeout_ms {self.transaction_timeout_ms} must be below "
                f"session_timeout_ms {self.session_timeout_ms}"
            )
        return self
