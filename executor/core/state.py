"""The records of ``run-state``: what the owner of a partition knows, one record per key.

Three kinds share the topic. Under a run id lies an `OpenRun`, or a `FinishedRun` that must be
remembered by itself; under a job id lies the `JobSummary`. Run ids contain ``@``, job ids
cannot, so the keys never meet. A tombstone forgets a key.

State grows with jobs and open runs, not with runs: finished runs of a recurring job live in
its summary and leave it as soon as the scheduler's promise (`executor.core.settled`) covers
them. What no promise covers is kept for `REMEMBER_MS`.
"""

from dataclasses import dataclass, replace

from executor.core.command import RunCommand
from executor.core.settled import Promise, is_settled, promise
from executor.core.table import AttemptStatus, Phase, Status

REMEMBER_MS = 7 * 86_400_000
"""As long as ``runs`` keeps a command (7 days): a duplicate cannot come from it later."""

INLINE_MAX = 16
"""Finished keys inside one summary. It is rewritten with each run, so it must stay small; what
exceeds it is kept by itself."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a run. ``finished_ms`` is ``None`` while it is going on."""

    attempt: int
    started_ms: int
    executor: str
    finished_ms: int | None = None
    status: AttemptStatus = AttemptStatus.RUNNING
    error: str | None = None


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that was claimed and has not reached a final status.

    Attributes:
        attempt: the current one (running), or the last one (waiting, retrying).
        attempt_limit: the last attempt allowed; a replay grants ``max_attempts`` more.
        idempotency_key: the same for all attempts of one claim.
        unretried: the job was deleted meanwhile: the running attempt is the last.
        not_before_ms: earliest start of the next attempt, waiting and retrying only.
        reopened: the key had been finished before.
    """

    command: RunCommand
    phase: Phase
    attempt: int
    deferral: int
    attempt_limit: int
    idempotency_key: str
    attempts: tuple[Attempt, ...]
    replays: int = 0
    reopened: bool = False
    unretried: bool = False
    not_before_ms: int | None = None
    last_error: str | None = None

    @property
    def run_id(self) -> str:
        """Key in ``run-state`` and in ``run-history``."""
        return self.command.run_id


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run, so that its duplicates are known. ``attempt`` and ``deferral`` as last."""

    run_id: str
    job_id: str
    scheduled_ms: int
    definition_offset: int
    attempt: int
    deferral: int
    status: Status
    finished_ms: int
    replays: int = 0


@dataclass(frozen=True, slots=True)
class JobSummary:
    """What is known of a job beyond its open runs.

    Attributes:
        promises: what the scheduler said is settled.
        finished: finished runs no promise of their own definition covers yet, by run id.
        runs: how many run keys were finished in all; 1 for a one-shot.
        failures_in_a_row: runs that ended ``dead`` since the last success.
        updated_ms: last change; one-shots and deleted jobs are forgotten `REMEMBER_MS` later.
    """

    job_id: str
    promises: tuple[Promise, ...] = ()
    finished: tuple[FinishedRun, ...] = ()
    runs: int = 0
    last_success_ms: int | None = None
    failures_in_a_row: int = 0
    deleted: bool = False
    updated_ms: int = 0

    def find(self, run_id: str) -> FinishedRun | None:
        """A finished run of the summary. Cost: at most `INLINE_MAX` comparisons."""
        return next((run for run in self.finished if run.run_id == run_id), None)

    def settles(self, command: RunCommand) -> bool:
        """Whether an unknown key like this one was promised not to come any more."""
        return is_settled(self.promises, command.scheduled_ms, command.definition_offset)


StateValue = OpenRun | FinishedRun | JobSummary


@dataclass(frozen=True, slots=True)
class StateChange:
    """One record of ``run-state``: the new value of a key, ``None`` to forget it."""

    key: str
    value: StateValue | None


def finished_run(run: OpenRun, status: Status, now_ms: int) -> FinishedRun:
    """What is to be remembered of a run that ended."""
    command = run.command
    return FinishedRun(command.run_id, command.job_id, command.scheduled_ms,
                       command.definition_offset, run.attempt, run.deferral, status, now_ms,
                       run.replays)  # fmt: skip


def conclude(summary: JobSummary, run: OpenRun, ended: FinishedRun) -> tuple[JobSummary, bool]:
    """The job's summary after ``run`` ended, and whether the run must be remembered by a record
    of its own (else the summary holds it).
    """
    command = run.command
    promises = summary.promises
    if command.settled_below_ms is not None:
        promises = promise(promises, command.settled_below_ms, command.definition_offset)
    inline = tuple(one for one in summary.finished
                   if one.run_id != command.run_id
                   and not _covered(promises, one, ended.finished_ms))  # fmt: skip
    settled = is_settled(promises, command.scheduled_ms, command.definition_offset)
    alone = command.manual or run.reopened or settled or len(inline) >= INLINE_MAX
    succeeded = ended.status is Status.SUCCEEDED
    return replace(
        summary,
        promises=promises,
        finished=inline if alone else (*inline, ended),
        runs=summary.runs + (not run.reopened),
        last_success_ms=ended.finished_ms if succeeded else summary.last_success_ms,
        failures_in_a_row=_failures(summary, ended.status),
        deleted=summary.deleted and run.unretried,
        updated_ms=ended.finished_ms,
    ), alone


def _covered(promises: tuple[Promise, ...], run: FinishedRun, now_ms: int) -> bool:
    """A promise of the run's own definition is needed: a one-shot that ran may be produced
    again under a newer one, and is then known only by its key.
    """
    own = any(run.scheduled_ms < s and run.definition_offset == d for s, d in promises)
    return own or run.finished_ms + REMEMBER_MS <= now_ms


def _failures(summary: JobSummary, status: Status) -> int:
    match status:
        case Status.SUCCEEDED:
            return 0
        case Status.DEAD:
            return summary.failures_in_a_row + 1
        case _:
            return summary.failures_in_a_row


def forget_at_ms(value: StateValue) -> int | None:
    """When a value may be forgotten, epoch ms; ``None``: not by age."""
    match value:
        case FinishedRun(finished_ms=finished_ms):
            return finished_ms + REMEMBER_MS
        case JobSummary(deleted=deleted, runs=runs, updated_ms=updated_ms):
            return updated_ms + REMEMBER_MS if deleted or runs <= 1 else None
        case OpenRun():
            return None
