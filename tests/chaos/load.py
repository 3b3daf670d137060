"""Users of the system: those who want a beat each second, and one who never leaves things be."""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import Producer

from scheduler.contract.partition import partition_of
from scheduler.core.instant import format_instant
from tests.chaos.target import FlakyTarget

STEADY_PARTITIONS = 256


_SCHEDULES: tuple[dict[str, Any], ...] = (
    {"every": "PT1S"},
    {"every": "PT3S"},
    {"schedule": "*/2 * * * * *"},
    {"schedule": "*/5 * * * * *", "jitter_seconds": 3},
    {"every": "PT2S", "jitter_seconds": 4},
)


class User:
    """Produces definitions as any client would: idempotent, acknowledged by all replicas."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._topic = f"{prefix}jobs"
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 2,  # brokers go away here on purpose
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": 120_000,
            }
        )

    def define(self, job_id: str, definition: dict[str, Any] | None) -> None:
        """Write a definition; ``None`` deletes the job."""
        key = job_id.encode()
        value = None if definition is None else json.dumps(definition).encode()
        self._producer.produce(
            self._topic, value, key, partition=partition_of(key, STEADY_PARTITIONS)
        )
        self._producer.poll(0)

    def flush(self, deadline_s: float = 60.0) -> int:
        """Wait for all acknowledgements; the number of records still without one."""
        return self._producer.flush(deadline_s)


def steady_ids(count: int) -> list[str]:
    return [f"steady-{number:04}" for number in range(count)]


def define_steady(user: User, count: int) -> None:
    """``count`` jobs of kind ``none``, one run each second from each, over all partitions."""
    for job_id in steady_ids(count):
        user.define(job_id, {"every": "PT1S", "target": {"kind": "none"}})


@dataclass(slots=True)
class Churn:
    """A user who changes definitions all the time: edits, deletions, re-creations, one-shots.

    Attributes:
        jobs: recurring jobs that are edited, deleted and made again.
        per_second: changes each second.
    """

    user: User
    rng: Random
    target: FlakyTarget
    jobs: int = 60
    per_second: float = 10.0
    changes: int = 0
    _once: int = 0
    _next_ms: float = 0.0
    _shots: list[str] = field(default_factory=list)

    def step(self, now_ms: int) -> None:
        """Do what is due by now; bounded, and never waits."""
        self._next_ms = max(self._next_ms, now_ms - 1000)
        while self._next_ms <= now_ms:
            self._next_ms += 1000 / self.per_second
            self.changes += 1
            self._change(now_ms)

    def _change(self, now_ms: int) -> None:
        chance = self.rng.random()
        if chance < 0.45:
            self.user.define(self._recurring(), self._recurring_definition())
        elif chance < 0.60:
            self.user.define(self._recurring(), None)
        elif chance < 0.85 or not self._shots:
            self._shoot(now_ms)
        elif chance < 0.95:
            self.user.define(self.rng.choice(self._shots), self._one_shot_definition(now_ms))
        else:
            self.user.define(self.rng.choice(self._shots), None)

    def _shoot(self, now_ms: int) -> None:
        self._once += 1
        job_id = f"shot-{self._once:05}"
        self._shots = [*self._shots[-50:], job_id]
        self.user.define(job_id, self._one_shot_definition(now_ms))

    def _recurring(self) -> str:
        return f"churn-{self.rng.randrange(self.jobs):03}"

    def _recurring_definition(self) -> dict[str, Any]:
        schedule = self.rng.choice(_SCHEDULES)
        policy = self.rng.choice(["run_once", "skip", "run_all"])
        return {
            **schedule,
            "misfire_policy": policy,
            "misfire_grace_seconds": self.rng.choice([3, 60]),
            "target": {"kind": "none"},
        }

    def _one_shot_definition(self, now_ms: int) -> dict[str, Any]:
        """Due between 2 s ago and 6 s from now; its target fails 0 to 3 attempts of 3."""
        run_at_ms = now_ms + self.rng.randrange(-2000, 6000)
        return {
            "run_at": format_instant(run_at_ms),
            "target": {
                "kind": "http",
                "url": self.target.url(self.rng.choice([0, 0, 1, 2, 3])),
                "method": "POST",
            },
            "max_attempts": 3,
            "timeout_seconds": 5,
            # Delays are random in [0, 8] s: those above 5 s go through the wheel.
            "retry_base_seconds": 10,
            "retry_cap_seconds": 8,
        }
