"""Folding records into jobs and runs as they are now."""

import json
from typing import Any

from scheduler.cli.views import JobView, jobs, runs
from scheduler.core.guard import Guard, Why, guard_headers
from scheduler.core.records import Headers, Incoming

HOME = 3


def _record(
    key: str, value: object, offset: int = 0, *, ms: int = 0, partition: int = HOME,
    headers: Headers = (),
) -> Incoming:  # fmt: skip
    encoded = None if value is None else json.dumps(value).encode()
    return Incoming("t", partition, offset, ms, key.encode(), encoded, headers)


def _guard(acts_on: int, why: Why, ms: int = 0) -> Headers:
    return guard_headers(Guard(acts_on, acts_on, ms, why))


def _jobs(definitions: list[Incoming], statuses: list[Incoming] | None = None) -> list[JobView]:
    return jobs(definitions, statuses or [], lambda _key: HOME)


def test_the_last_definition_of_a_key_is_shown() -> None:
    views = _jobs([
        _record("b", {"every": "PT5S"}, 0),
        _record("a", {"every": "PT6S"}, 1),
        _record("b", {"every": "PT7S"}, 2),
    ])  # fmt: skip
    assert [(view.job_id, view.definition, view.offset) for view in views] == [
        ("a", {"every": "PT6S"}, 1),
        ("b", {"every": "PT7S"}, 2),
    ]


def test_a_guarded_record_is_void_after_a_later_one_of_a_user() -> None:
    late_tombstone = _record("a", None, 2, headers=_guard(0, Why.FINISHED))
    views = _jobs([_record("a", {"v": 1}, 0), _record("a", {"v": 2}, 1), late_tombstone])
    assert views[0].definition == {"v": 2}


def test_a_guarded_record_replaces_the_one_it_acts_on() -> None:
    kept = _record("a", {"v": 1}, 2, headers=_guard(1, Why.KEPT))
    views = _jobs([_record("a", {"v": 1}, 0), _record("a", "refused", 1), kept])
    assert views[0].definition == {"v": 1}
    assert views[0].offset == 2


def test_a_record_in_a_wrong_partition_counts_once_it_is_moved() -> None:
    stray = _record("a", {"v": 1}, 50, ms=20, partition=HOME + 1)
    assert _jobs([stray]) == []
    moved = _record("a", {"v": 1}, 0, ms=30, headers=_guard(50, Why.MOVED, ms=20))
    assert _jobs([stray, moved])[0].definition == {"v": 1}


def test_a_moved_record_does_not_replace_a_newer_one() -> None:
    newer = _record("a", {"v": 2}, 0, ms=25)
    moved = _record("a", {"v": 1}, 1, ms=30, headers=_guard(50, Why.MOVED, ms=20))
    assert _jobs([newer, moved])[0].definition == {"v": 2}


def test_a_deleted_job_is_gone_and_a_refused_one_is_shown() -> None:
    statuses = [
        _record("gone", {"state": "deleted"}),
        _record("bad", {"state": "rejected", "error": "every: too short"}),
    ]
    views = _jobs([_record("gone", {"v": 1}, 0), _record("gone", None, 1)], statuses)
    assert [(view.job_id, view.state) for view in views] == [("bad", "rejected")]


def test_a_job_whose_last_change_was_refused_goes_on() -> None:
    kept = _record("a", {"v": 1}, 2, headers=_guard(1, Why.KEPT))
    refusal = _record("a", {"state": "rejected", "error": "every: too short"})
    view = _jobs([_record("a", {"v": 1}, 0), _record("a", {"v": 2}, 1), kept], [refusal])[0]
    assert (view.state, view.problem) == ("active", "every: too short")


def test_a_job_nobody_has_answered_for_is_pending() -> None:
    assert _jobs([_record("a", {"v": 1})])[0].state == "pending"


def _row(run_id: str, status: str, **more: Any) -> Incoming:
    row = {"run_id": run_id, "scheduled_at": run_id.split("@")[1], "status": status, **more}
    return _record(run_id, row)


def test_runs_are_their_newest_rows_latest_first_up_to_the_limit() -> None:
    history = [
        _row("a@1", "running"),
        _row("a@2", "running"),
        _row("b@3", "dispatched"),
        _row("a@2", "succeeded"),
    ]
    rows = runs(history, lambda _row: True, limit=2)
    assert [(row["run_id"], row["status"]) for row in rows] == [
        ("b@3", "dispatched"),
        ("a@2", "succeeded"),
    ]


def test_a_run_is_kept_by_its_newest_row() -> None:
    history = [_row("a@1", "running"), _row("a@1", "succeeded"), _row("a@2", "running")]
    rows = runs(history, lambda row: row["status"] == "running", limit=9)
    assert [row["run_id"] for row in rows] == ["a@2"]


def test_what_is_no_object_is_passed_over() -> None:
    garbage = Incoming("t", HOME, 0, 0, b"a@1", b"\xff{", ())
    assert runs([garbage], lambda _row: True, limit=9) == []
    assert JobView("a").state == "pending"
