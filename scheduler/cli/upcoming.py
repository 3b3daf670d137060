"""Instants at which a job will run next, worked out from its definition."""

import json

from scheduler.cli.views import JobView
from scheduler.contract.compile import compile_job
from scheduler.core.definition import CompiledJob, OnceSpec
from scheduler.core.schedule import schedule_of
from scheduler.errors import DefinitionError


def upcoming(view: JobView, now_ms: int, count: int) -> list[int]:
    """The next effective instants after ``now_ms`` (epoch ms), ascending, at most ``count``.

    Calendars are not looked at: an excluded date is listed like any other.
    """
    if view.definition is None or view.state in ("finished", "deleted"):
        return []
    try:
        job = compile_job(view.job_id, json.dumps(view.definition).encode(), view.offset or 0)
    except DefinitionError:
        return []  # refused by this version, e.g. one that is newer or older than the producer
    if job.paused:
        return []
    return [ms + job.cohort.jitter_ms for ms in _nominal(job, now_ms, count)]


def _nominal(job: CompiledJob, now_ms: int, count: int) -> list[int]:
    after_ms = now_ms - job.cohort.jitter_ms
    if isinstance(job.cohort.schedule, OnceSpec):
        due_ms = job.run_at_ms
        return [due_ms] if due_ms is not None and due_ms > after_ms else []
    if job.start_ms is not None:
        after_ms = max(after_ms, job.start_ms - 1)
    schedule = schedule_of(job.cohort.schedule)
    instants: list[int] = []
    while len(instants) < count:
        following = schedule.next_after(after_ms)
        if following is None or (job.end_ms is not None and following > job.end_ms):
            break
        instants.append(following)
        after_ms = following
    return instants
