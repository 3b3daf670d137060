"""Run commands and contexts for tests of the executor's core."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from executor.core.command import RunCommand, run_command
from executor.core.machine import Context, Decision
from executor.core.outcome import Failed
from executor.core.partition import Partition
from executor.core.routes import ExecutorRoutes
from executor.core.state import OpenRun
from scheduler.contract.partition import partition_of
from scheduler.core.instant import format_instant
from scheduler.core.records import Outgoing

T0 = 1_790_000_000_000
HTTP = {"kind": "http", "url": "http://localhost/"}
KAFKA = {"kind": "kafka", "topic": "orders"}
ROUTES = ExecutorRoutes(partition_of)


@dataclass(slots=True)
class Deliveries:
    """Kafka targets are delivered, unless ``failure`` says otherwise; the rest needs a handler."""

    failure: Failed | None = None
    refused: dict[str, str] = field(default_factory=dict)
    doubts: int = 0

    def deliver(self, run: OpenRun) -> Outgoing | Failed | None:
        if run.run_id in self.refused:
            return Failed(self.refused[run.run_id], retryable=False)
        if run.command.target_kind != "kafka":
            return None
        return self.failure or Outgoing("orders", 0, b"k", f"{run.run_id} {run.attempt}".encode())

    def doubt(self) -> None:
        self.doubts += 1

    def refuse(self, run_id: str, reason: str) -> None:
        self.refused[run_id] = reason


def plain(job_id: str = "job", at_ms: int = T0, **more: Any) -> dict[str, Any]:
    """A run command's JSON."""
    scheduled_at = format_instant(at_ms)
    return {
        "kind": "run", "job_id": job_id, "scheduled_at": scheduled_at, "run_at": scheduled_at,
        "attempt": 1, "deferral": 0, "trigger": "schedule", "command_id": None,
        "run_id": f"{job_id}@{scheduled_at}", "definition_offset": 1, "settled_below": None,
        "owner": "default", "type": None, "queue": "default", "target": HTTP, "payload": 1,
        "max_attempts": 3, "timeout_seconds": 60, "retry_base_seconds": 10,
        "retry_cap_seconds": 3600,
    } | more  # fmt: skip


def command(job_id: str = "job", at_ms: int = T0, **more: Any) -> RunCommand:
    return run_command(plain(job_id, at_ms, **more))


def context(now_ms: int = T0, deliveries: Deliveries | None = None, seed: int = 1,
            **more: Any) -> Context:  # fmt: skip
    return Context(now_ms, "me", ROUTES, random.Random(seed), deliveries or Deliveries(), **more)


def commit(state: Partition, decision: Decision) -> Decision:
    """What a committed transaction does with a decision."""
    for change in decision.state:
        state.apply(change)
    return decision


def rows(decision: Decision, topic: str) -> list[Mapping[str, Any]]:
    """Decoded values of a decision's records for one topic."""
    return [json.loads(record.value or b"null") for record in decision.records
            if record.topic == topic]  # fmt: skip


def statuses(decision: Decision) -> list[str]:
    return [row["status"] for row in rows(decision, "run-history")]
