"""Records as they lie in topics become the data the rules judge."""

import json
from typing import Any

from scheduler.core.instant import format_instant
from scheduler.core.records import Headers, Incoming
from tests.checker.history import Definition, JobDeleted
from tests.checker.read import TOPICS, history_of

DUE = format_instant(5000)
COMMAND = {
    "kind": "run", "job_id": "a", "scheduled_at": DUE, "run_at": DUE, "attempt": 1, "deferral": 0,
    "trigger": "schedule", "command_id": None, "definition_offset": 3, "settled_below": DUE,
}  # fmt: skip


def record(
    topic: str, value: Any, offset: int, *, key: bytes = b"a", headers: Headers = ()
) -> Incoming:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Incoming(topic, 7, offset, 1000 + offset, key, data, headers)


def history_with(**topics: list[Incoming]) -> Any:
    records: dict[str, list[Incoming]] = {name: [] for name in TOPICS}
    records.update({name.replace("_", "-"): found for name, found in topics.items()})
    return history_of(records, settled_ms=9000)


def test_definitions_deletions_and_refused_values() -> None:
    http = {"every": "PT2S", "target": {"kind": "HTTP", "url": "https://reports.example/run"}}
    good, refused, deletion = history_with(
        jobs=[
            record("jobs", http, 3),
            record("jobs", b"{", 4),
            record("jobs", None, 5),
            record("jobs", http, 6, headers=(("duewheel-guard", b"{}"),)),
        ]
    ).definitions
    assert (good.job_id, good.offset, good.appended_ms, good.target_kind) == ("a", 3, 1003, "http")
    assert good.job.cohort.schedule.every_ms == 2000
    assert refused == Definition("a", 4, 1004, None)
    assert deletion == Definition("a", 5, 1005, None, deletes=True)


def test_a_run_command_and_a_job_deleted_mark() -> None:
    deleted = {"kind": "job-deleted", "job_id": "a"}
    history = history_with(runs=[record("runs", COMMAND, 8), record("runs", deleted, 9)])
    (run,) = history.runs
    assert (run.key, run.attempt, run.definition_offset) == (("a", 5000, None), 1, 3)
    assert (run.partition, run.offset, run.sent_ms) == (7, 8, 1008)
    assert run.settled_below_ms == 5000
    assert history.deleted == (JobDeleted("a", 7, 9),)


def test_outcomes_span_instants_only_when_they_say_so() -> None:
    row = {**COMMAND, "status": "missed", "reason": "window"}
    through = {**row, "through": format_instant(9000), "count": 3}
    single, several = history_with(
        run_history=[record("run-history", row, 1), record("run-history", through, 2)]
    ).outcomes
    assert (single.scheduled_ms, single.through_ms, single.count) == (5000, 5000, 1)
    assert (several.scheduled_ms, several.through_ms, several.count) == (5000, 9000, 3)


def test_delayed_runs_dead_letters_and_statuses() -> None:
    later = {**COMMAND, "attempt": 2, "trigger": "retry", "not_before": format_instant(8000)}
    status = {"job_id": "a", "state": "active", "definition_offset": 3, "effective_from": DUE}
    history = history_with(
        runs_retry=[record("runs-retry", later, 1)],
        runs_dead_letter=[record("runs-dead-letter", {**COMMAND, "attempt": 5}, 2)],
        job_status=[record("job-status", status, 4)],
    )
    assert (history.delayed[0].not_before_ms, history.delayed[0].attempt) == (8000, 2)
    assert (history.dead_letters[0].key, history.dead_letters[0].attempt) == (("a", 5000, None), 5)
    assert (history.statuses[0].written_ms, history.statuses[0].effective_from_ms) == (1004, 5000)
