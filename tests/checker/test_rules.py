"""Every rule flags a bad history made by hand, and lets the good one pass."""

from dataclasses import replace

import pytest

from tests.checker import hand_made as made
from tests.checker.history import (
    DeadLetter,
    Definition,
    History,
    JobDeleted,
    Outcome,
    Run,
    Status,
)
from tests.checker.rules import RULES, check

GOOD = made.GOOD
BEAT = made.BEATS[-1]


def with_run(*added: Run, without: Run | None = None) -> History:
    kept = tuple(run for run in GOOD.runs if run != without)
    return replace(GOOD, runs=(*kept, *added))


def with_outcome(*added: Outcome, without: Outcome | None = None) -> History:
    kept = tuple(row for row in GOOD.outcomes if row != without)
    return replace(GOOD, outcomes=(*kept, *added))


def with_status(old: Status, new: Status | None) -> History:
    statuses = tuple(new if status == old else status for status in GOOD.statuses)
    return replace(GOOD, statuses=tuple(s for s in statuses if s is not None))


def last_outcome(job_id: str) -> Outcome:
    return [row for row in GOOD.outcomes if row.job_id == job_id][-1]


BAD: dict[str, tuple[str, History]] = {
    "sent twice": ("dispatched_once", with_run(replace(BEAT, offset=60))),
    "an instant without a run": ("none_missing", with_run(without=made.BEATS[1])),
    "a one-shot without a run": ("none_missing", with_run(without=made.LOST)),
    "the predecessor's last instant lost at an edit": (
        "none_missing",
        with_run(without=made.BEATS[2]),
    ),
    "an instant that nobody recorded as missed": (
        "none_missing",
        with_outcome(without=made.missed("beat", 6000, 6000, 1, 2)),
    ),
    "sent before its instant": (
        "not_early",
        with_run(replace(BEAT, sent_ms=BEAT.run_at_ms - 1), without=BEAT),
    ),
    "run_at before the nominal instant": (
        "not_early",
        with_run(replace(BEAT, run_at_ms=BEAT.scheduled_ms - 1), without=BEAT),
    ),
    "a delayed run back too soon": (
        "not_early",
        with_run(replace(made.SECOND, sent_ms=8499), without=made.SECOND),
    ),
    "before the version began": ("within_version", with_run(made.run("beat", 1000, 0, 60))),
    "the old version after its successor began": (
        "within_version",
        with_run(made.run("beat", 5000, 0, 60)),
    ),
    "the new version at its beginning": ("within_version", with_run(made.run("beat", 4000, 2, 60))),
    "an instant that is not on the schedule": (
        "within_version",
        with_run(made.run("beat", 7000, 2, 60)),
    ),
    "a definition that was never taken up": (
        "within_version",
        with_run(made.run("beat", 5000, 77, 60)),
    ),
    "a version that begins before its append time": (
        "versions_begin",
        with_status(made.STATUSES[0], replace(made.STATUSES[0], effective_from_ms=999)),
    ),
    "a new job that begins late": (
        "versions_begin",
        with_status(made.STATUSES[0], replace(made.STATUSES[0], effective_from_ms=1001)),
    ),
    "an edit that begins after it was accepted": (
        "versions_begin",
        with_status(made.STATUSES[4], replace(made.STATUSES[4], effective_from_ms=5051)),
    ),
    "a definition without an answer": (
        "definitions_answered",
        replace(GOOD, definitions=(*GOOD.definitions, Definition("mute", 9, 1000, None))),
    ),
    "missed and dispatched": ("decided_once", with_outcome(made.missed("beat", 8000, 8000, 1, 2))),
    "missed twice": ("decided_once", with_outcome(made.missed("beat", 6000, 6000, 1, 2))),
    "a miscounted range": ("decided_once", with_outcome(made.missed("beat", 6000, 7000, 2, 2))),
    "an attempt that steps back": (
        "attempts_increase",
        with_run(replace(made.FIRST, offset=60, deferral=1, sent_ms=9000)),
    ),
    "a history that steps back": (
        "attempts_increase",
        with_outcome(made.outcome(made.FIRST, "succeeded", 70)),
    ),
    "a fire after the deletion, by order": (
        "silent_after_deletion",
        with_run(replace(BEAT, deferral=1, offset=8)),
    ),
    "a fire after the deletion, by time": (
        "silent_after_deletion",
        replace(
            with_run(replace(BEAT, offset=8, sent_ms=11_051), without=BEAT),
            deleted=(),
        ),
    ),
    "a fire after the first of two deletions": (
        "silent_after_deletion",
        replace(
            with_run(replace(BEAT, offset=8), without=BEAT),
            definitions=(*GOOD.definitions, Definition("beat", 5, 8600, None, deletes=True)),
            statuses=(*GOOD.statuses, Status("beat", 6, 8650, "deleted", 5, 8600)),
            deleted=(*GOOD.deleted, JobDeleted("beat", 0, 9)),
        ),
    ),
    "a promise broken": (
        "settled_below_kept",
        with_run(replace(made.BEATS[0], offset=60), without=made.BEATS[0]),
    ),
    "a delayed run that never returned": ("delayed_runs_return", with_run(without=made.SECOND)),
    "a retry that nobody asked for": (
        "delayed_runs_return",
        with_run(replace(made.SECOND, attempt=3, offset=60)),
    ),
    "a run that ends in between": (
        "outcomes_final",
        with_outcome(without=last_outcome("once")),
    ),
    "a run without any outcome": ("outcomes_final", with_outcome(without=last_outcome("lost"))),
    "dispatched is not an end for a target": (
        "outcomes_final",
        with_outcome(replace(last_outcome("once"), status="dispatched", offset=80)),
    ),
    "a death without a dead letter": ("dead_letters_match", replace(GOOD, dead_letters=())),
    "a dead letter without a death": (
        "dead_letters_match",
        replace(GOOD, dead_letters=(*GOOD.dead_letters, DeadLetter("once", 2500, None, 2, 1, 1))),
    ),
}


def test_the_good_history_keeps_every_rule() -> None:
    assert [str(violation) for violation in check(GOOD)] == []


@pytest.mark.parametrize("case", BAD)
def test_a_bad_history_is_flagged(case: str) -> None:
    rule, history = BAD[case]
    assert rule in {violation.rule for violation in check(history)}


def test_every_rule_has_a_bad_history() -> None:
    assert {rule for rule, _ in BAD.values()} == {rule.__name__ for rule in RULES}


def test_a_violation_says_what_and_where() -> None:
    rule, history = BAD["sent twice"]
    found = [str(violation) for violation in check(history) if violation.rule == rule]
    assert found == [
        "dispatched_once: beat@1970-01-01T00:00:08.000Z: attempt 1.0 of 2 at "
        "runs[0]@5 1970-01-01T00:00:08.020Z, runs[0]@60 1970-01-01T00:00:08.020Z"
    ]


def test_nothing_is_demanded_beyond_the_settled_instant() -> None:
    early = replace(GOOD, settled_ms=1999, runs=(), outcomes=(), delayed=(), dead_letters=())
    assert check(early) == []


def test_the_same_one_shot_again_is_not_a_second_dispatch() -> None:
    again = replace(GOOD.definitions[4], offset=9, appended_ms=5000)
    status = Status("lost", 9, 5050, "active", 9, 5000)
    rerun = replace(made.LOST, definition_offset=9, run_at_ms=5000, sent_ms=5020, offset=61)
    history = replace(
        with_run(rerun),
        definitions=(*GOOD.definitions, again),
        statuses=(*GOOD.statuses, status),
    )
    assert check(history) == []


def test_a_void_delayed_run_need_not_return() -> None:
    deletion = Definition("once", 8, 3000, None, deletes=True)
    history = replace(
        with_run(without=made.SECOND),
        definitions=(*GOOD.definitions, deletion),
        statuses=(*GOOD.statuses, Status("once", 9, 3050, "deleted", 8, 3000)),
        outcomes=(
            *(row for row in GOOD.outcomes if row.job_id != "once"),
            replace(last_outcome("once"), status="cancelled", attempt=1),
        ),
    )
    assert check(history) == []
