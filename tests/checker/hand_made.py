"""A small good history, made by hand; tests break one thing of it at a time.

One second is 1000 ms; time begins at 0. Two jobs fire every second, one with executors' outcomes:

    beat   every 1 s from E=1000, edited at offset 2 (E=4000) to every 2 s, deleted at 3 (E=8000)
    once   one-shot at 2500, fails once, succeeds at its second attempt after a delay
    lost   one-shot at 3000, dies at its only attempt
"""

from dataclasses import replace

from scheduler.core.definition import (
    Cohort,
    CompiledJob,
    EverySpec,
    MisfirePolicy,
    OnceSpec,
    ScheduleSpec,
)
from tests.checker.history import (
    DeadLetter,
    Definition,
    Delayed,
    History,
    JobDeleted,
    Outcome,
    Run,
    Status,
)


def job(job_id: str, schedule: ScheduleSpec, run_at_ms: int | None = None) -> CompiledJob:
    cohort = Cohort(schedule, 0, MisfirePolicy.RUN_ONCE, 60_000, 86_400_000, "default")
    return CompiledJob(job_id, cohort, run_at_ms, None, None, paused=False, body=b"")


def every(job_id: str, every_ms: int) -> CompiledJob:
    return job(job_id, EverySpec(every_ms, 0, anchored=False))


def run(job_id: str, scheduled_ms: int, definition: int, offset: int, kind: str = "none") -> Run:
    return Run(
        job_id=job_id, scheduled_ms=scheduled_ms, run_at_ms=scheduled_ms, attempt=1, deferral=0,
        trigger="schedule", command_id=None, definition_offset=definition,
        settled_below_ms=scheduled_ms, target_kind=kind, partition=0, offset=offset,
        sent_ms=scheduled_ms + 20,
    )  # fmt: skip


def outcome(of: Run, status: str, offset: int) -> Outcome:
    return Outcome(
        of.job_id, of.scheduled_ms, of.scheduled_ms, 1, of.command_id, of.definition_offset,
        status, of.attempt, None, 0, offset,
    )  # fmt: skip


def missed(job_id: str, first_ms: int, through_ms: int, count: int, definition: int) -> Outcome:
    return Outcome(job_id, first_ms, through_ms, count, None, definition, "missed", 0,
                   "superseded", 0, 90)  # fmt: skip


DEFINITIONS = (
    Definition("beat", 0, 1000, every("beat", 1000)),
    Definition("once", 1, 1100, job("once", OnceSpec(), 2500), target_kind="http"),
    Definition("beat", 2, 3900, every("beat", 2000)),
    Definition("beat", 3, 8000, None, deletes=True),
    Definition("lost", 4, 1200, job("lost", OnceSpec(), 3000), target_kind="http"),
)
STATUSES = (
    Status("beat", 0, 1050, "active", 0, 1000),
    Status("once", 1, 1150, "active", 1, 1100),
    Status("lost", 2, 1250, "active", 4, 1200),
    Status("once", 3, 2550, "finished", 1, None),
    Status("beat", 4, 4050, "active", 2, 4000),
    Status("beat", 5, 8050, "deleted", 3, 8000),
)
FIRST = run("once", 2500, 1, 1, "http")
SECOND = replace(FIRST, attempt=2, trigger="retry", offset=6, sent_ms=8600, settled_below_ms=None)
LOST = run("lost", 3000, 4, 3, "http")
BEATS = (
    run("beat", 2000, 0, 0),
    run("beat", 3000, 0, 2),
    run("beat", 4000, 0, 4),
    run("beat", 8000, 2, 5),
)
DELAYED = Delayed("once", 2500, None, 2, 0, 1, 8500, "retry", 0, 2600)

GOOD = History(
    settled_ms=9000,
    definitions=DEFINITIONS,
    statuses=STATUSES,
    runs=(*BEATS, FIRST, SECOND, LOST),
    deleted=(JobDeleted("beat", 0, 7),),
    outcomes=(
        *(outcome(beat, "dispatched", 10 + n) for n, beat in enumerate(BEATS)),
        missed("beat", 6000, 6000, 1, 2),
        outcome(FIRST, "running", 20),
        outcome(FIRST, "retrying", 21),
        outcome(SECOND, "running", 22),
        outcome(SECOND, "succeeded", 23),
        outcome(LOST, "dead", 24),
    ),
    delayed=(DELAYED,),
    dead_letters=(DeadLetter("lost", 3000, None, 1, 4, 0),),
    executors=True,
)
