"""What happens to a run, decided and not done.

Theory of operation. Every ``decide_*`` function reads the state of one partition and returns a
`Decision`: state records, records for others, handlers to start and stop, waits to set. The
caller commits all records of a decision, with the offset of the command that caused it, in one
transaction, applies the state records, and only then starts handlers. So a crash at any point
leaves either nothing of a decision or all of its records, and an attempt is recorded before it
starts. A handler that was recorded and never started is found by the next owner as an open run.

Invariants:

* an attempt of a run key is started by at most one decision: each start raises ``attempt``;
* a command whose (attempt, deferral) is not above what is known of its key changes nothing;
* a finished run is in its job's summary or has a record of its own until no duplicate can come.

What is not here yet: leases and reports of external workers, limits, and the concurrency
policies. Every run is treated as ``concurrency: allow``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from executor.core.codec import instant_text
from executor.core.command import REOPENING, CancelCommand, JobDeleted, RunCommand, Trigger
from executor.core.outcome import Cancelled, Failed, Result, Succeeded, Verdict, cut, judge
from executor.core.partition import Draft, RunStates, known_run, summary_of
from executor.core.rows import (
    dead_letter_record,
    delayed_record,
    dispatched_record,
    history_record,
)
from executor.core.state import (
    Attempt,
    FinishedRun,
    OpenRun,
    StateChange,
    conclude,
    finished_run,
)
from executor.core.table import (
    OPEN_PHASES,
    TABLE,
    AttemptStatus,
    Event,
    Phase,
    Status,
    Transition,
    transition,
)
from scheduler.core.records import Outgoing
from scheduler.errors import invariant

if TYPE_CHECKING:
    from random import Random

    from executor.core.routes import ExecutorRoutes


class Delivery(Protocol):
    """Targets whose effect is a record in the claiming transaction itself."""

    def deliver(self, run: OpenRun) -> Outgoing | Failed | None:
        """The target's message, why there can be none, or ``None``: a handler must do it."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision depends on besides state.

    Attributes:
        executor: this instance, as history names it.
        soon_ms: next attempts nearer than this wait in this process.
    """

    now_ms: int
    executor: str
    routes: "ExecutorRoutes"
    rng: "Random"
    delivery: Delivery
    soon_ms: int = 5000


@dataclass(frozen=True, slots=True)
class Wait:
    """Start the next attempt of a run when ``delay_ms`` have passed."""

    run_id: str
    attempt: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Records and effects; nothing of it has happened yet.

    Attributes:
        note: why nothing happens, one of the ``NOTE_`` values; ``None`` otherwise.
    """

    state: tuple[StateChange, ...] = ()
    records: tuple[Outgoing, ...] = ()
    starts: tuple[OpenRun, ...] = ()
    stops: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    note: str | None = None


NOTE_DUPLICATE = "duplicate"
NOTE_RUNNING = "already running"
NOTE_STALE = "stale"
NOTHING = Decision()


def decide_command(states: RunStates, command: RunCommand, ctx: Context) -> Decision:
    """Claim a run, or drop its command as a duplicate."""
    if command.target_kind == "none":
        return Decision(records=(dispatched_record(ctx.routes, command, ctx.now_ms),))
    known = known_run(states, command.job_id, command.run_id)
    if _is_duplicate(states, command, known):
        return Decision(note=NOTE_DUPLICATE)
    change = transition(_phase(known), Event.COMMAND)
    if change is None:
        return Decision(note=NOTE_RUNNING)
    return _begin(states, _opened(command, known), change, ctx)


def decide_result(states: RunStates, job_run: tuple[str, int], result: Result,
                  ctx: Context) -> Decision:  # fmt: skip
    """Record what came of an attempt, given as (run id, attempt)."""
    run_id, attempt = job_run
    run = states.get(run_id)
    if not isinstance(run, OpenRun) or run.phase is not Phase.RUNNING or run.attempt != attempt:
        return Decision(note=NOTE_STALE)
    return _end_attempt(states, run, result, ctx)


def decide_due(states: RunStates, run_id: str, attempt: int, event: Event,
               ctx: Context) -> Decision:  # fmt: skip
    """Start the next attempt of an open run: its wait is over (`Event.DUE`), or it was
    inherited and nobody speaks for it any more (`Event.TAKEN_OVER`).
    """
    run = states.get(run_id)
    if not isinstance(run, OpenRun) or run.attempt != attempt:
        return Decision(note=NOTE_STALE)
    change = transition(run.phase, event)
    if change is None:
        return Decision(note=NOTE_STALE)
    if event is Event.TAKEN_OVER and run.phase is Phase.RUNNING:
        run = _lost_attempt(run, ctx.now_ms)
    if run.attempt >= run.attempt_limit or run.unretried:
        invariant(transition(run.phase, Event.FAILED_FOR_GOOD), f"{run.phase} can fail for good")
        return _finish(states, run, Status.DEAD, ctx, "attempts used up")
    return _begin(states, replace(run, attempt=run.attempt + 1, deferral=0), change, ctx)


def decide_cancel(states: RunStates, command: CancelCommand, ctx: Context) -> Decision:
    """Cancel one open run, or all of the job's."""
    runs = states.open_runs(command.job_id)
    chosen = [run for run in runs if command.run_id in (None, run.run_id)]
    return _cancel(states, chosen, "cancelled by command", ctx)


def decide_job_deleted(states: RunStates, command: JobDeleted, ctx: Context) -> Decision:
    """Let what runs finish unretried, cancel what waits, forget the job in time."""
    runs = states.open_runs(command.job_id)
    waiting = [run for run in runs if run.phase is not Phase.RUNNING]
    running = [StateChange(run.run_id, replace(run, unretried=True))
               for run in runs if run.phase is Phase.RUNNING]  # fmt: skip
    if not runs and states.get(command.job_id) is None:
        return NOTHING
    cancelled = _cancel(states, waiting, "job deleted", ctx)
    draft = Draft(states)
    draft.stage((*cancelled.state, *running))
    gone = replace(summary_of(draft, command.job_id), deleted=True, updated_ms=ctx.now_ms)
    draft.stage((StateChange(command.job_id, gone),))
    return replace(cancelled, state=tuple(draft.changes()))


def _phase(known: OpenRun | FinishedRun | None) -> Phase:
    match known:
        case None:
            return Phase.UNKNOWN
        case OpenRun(phase=phase):
            return phase
        case FinishedRun():
            return Phase.FINISHED


def _is_duplicate(states: RunStates, command: RunCommand,
                  known: OpenRun | FinishedRun | None) -> bool:  # fmt: skip
    if known is not None:
        return (command.attempt, command.deferral) <= (known.attempt, known.deferral)
    if command.manual or command.trigger in REOPENING:
        return False
    return summary_of(states, command.job_id).settles(command)


def _opened(command: RunCommand, known: OpenRun | FinishedRun | None) -> OpenRun:
    """The run as its claim begins; a retry goes on with the attempts known so far."""
    if isinstance(known, OpenRun):
        return replace(known, attempt=command.attempt, deferral=command.deferral)
    reopens = command.trigger in REOPENING
    granted = command.attempt - 1 if reopens else 0
    replays = known.replays if known else 0
    return OpenRun(
        command=command,
        phase=Phase.UNKNOWN,
        attempt=command.attempt,
        deferral=command.deferral,
        attempt_limit=granted + command.max_attempts,
        idempotency_key=_idempotency_key(command, known),
        attempts=(),
        replays=replays + (command.trigger is Trigger.REPLAY),
        reopened=known is not None,
    )


def _idempotency_key(command: RunCommand, known: FinishedRun | None) -> str:
    """One key per intended effect: a replay of a run that had succeeded intends another one."""
    key = f"{command.job_id}/{instant_text(command.scheduled_ms)}"
    again = known is not None and known.status is Status.SUCCEEDED
    if command.command_id is not None and (command.manual or again):
        return f"{key}#{command.command_id}"
    return key


def _begin(states: RunStates, run: OpenRun, change: Transition, ctx: Context) -> Decision:
    """Start an attempt: deliver it within this transaction, or claim it for a handler."""
    started = Attempt(run.attempt, ctx.now_ms, ctx.executor)
    running = replace(run, phase=change.phase, attempts=(*run.attempts, started),
                      not_before_ms=None)  # fmt: skip
    delivered = ctx.delivery.deliver(running)
    match delivered:
        case None:
            row = history_record(ctx.routes, running, change.status, ctx.now_ms)
            return Decision((StateChange(run.run_id, running),), (row,), starts=(running,))
        case Failed():
            return _end_attempt(states, running, delivered, ctx)
        case Outgoing():
            decision = _end_attempt(states, running, Succeeded(), ctx)
            return replace(decision, records=(delivered, *decision.records))


def _end_attempt(states: RunStates, run: OpenRun, result: Result, ctx: Context) -> Decision:
    verdict = judge(run, result, ctx.soon_ms, ctx.rng)
    change = TABLE[run.phase, verdict.event]
    ended = _with_ended_attempt(run, result, ctx.now_ms)
    if change.phase is not Phase.FINISHED:
        return _retry(ended, change, verdict, ctx)
    reason = result.reason if isinstance(result, Cancelled) else None
    return _finish(states, ended, change.status, ctx, reason)


def _with_ended_attempt(run: OpenRun, result: Result, now_ms: int) -> OpenRun:
    match result:
        case Failed(error=error):
            return _close_attempt(run, AttemptStatus.FAILED, cut(error), now_ms)
        case Succeeded():
            return _close_attempt(run, AttemptStatus.SUCCEEDED, None, now_ms)
        case Cancelled():
            return _close_attempt(run, AttemptStatus.CANCELLED, None, now_ms)


def _close_attempt(run: OpenRun, status: AttemptStatus, error: str | None,
                   now_ms: int) -> OpenRun:  # fmt: skip
    invariant(run.attempts, f"{run.run_id} has an attempt to close")
    last = replace(run.attempts[-1], finished_ms=now_ms, status=status, error=error)
    return replace(run, attempts=(*run.attempts[:-1], last), last_error=error or run.last_error)


def _lost_attempt(run: OpenRun, now_ms: int) -> OpenRun:
    executor = run.attempts[-1].executor if run.attempts else "unknown"
    return _close_attempt(run, AttemptStatus.FAILED, f"executor {executor} was lost", now_ms)


def _retry(run: OpenRun, change: Transition, verdict: Verdict, ctx: Context) -> Decision:
    not_before_ms = ctx.now_ms + verdict.delay_ms
    waiting = replace(run, phase=change.phase, not_before_ms=not_before_ms)
    row = history_record(ctx.routes, waiting, change.status, ctx.now_ms)
    state = (StateChange(run.run_id, waiting),)
    if change.phase is Phase.WAITING:
        wait = Wait(run.run_id, run.attempt, verdict.delay_ms)
        return Decision(state, (row,), waits=(wait,))
    return Decision(state, (delayed_record(ctx.routes, waiting, not_before_ms), row))


def _finish(states: RunStates, run: OpenRun, status: Status, ctx: Context,
            reason: str | None) -> Decision:  # fmt: skip
    finished = replace(run, phase=Phase.FINISHED, not_before_ms=None)
    ended = finished_run(finished, status, ctx.now_ms)
    summary, alone = conclude(summary_of(states, run.command.job_id), finished, ended)
    state = [StateChange(summary.job_id, summary)]
    if alone:
        state.append(StateChange(run.run_id, ended))
    elif states.get(run.run_id) is not None:
        state.append(StateChange(run.run_id, None))
    records = [history_record(ctx.routes, finished, status, ctx.now_ms, reason)]
    if status is Status.DEAD:
        records.append(dead_letter_record(ctx.routes, finished, ctx.now_ms))
    return Decision(tuple(state), tuple(records))


def _cancel(states: RunStates, runs: Iterable[OpenRun], reason: str, ctx: Context) -> Decision:
    draft = Draft(states)
    records: list[Outgoing] = []
    stops: list[str] = []
    for run in runs:
        invariant(run.phase in OPEN_PHASES, f"{run.run_id} is open")
        decision = _finish(draft, _withdrawn(run, ctx.now_ms), Status.CANCELLED, ctx, reason)
        draft.stage(decision.state)
        records.extend(decision.records)
        stops.append(run.run_id)
    return Decision(tuple(draft.changes()), tuple(records), stops=tuple(stops))


def _withdrawn(run: OpenRun, now_ms: int) -> OpenRun:
    """A run as its cancellation leaves it. The attempt that waits in the wheel counts as used,
    so that its command, should it still come, is a duplicate.
    """
    if run.phase is Phase.RETRYING:
        return replace(run, attempt=run.attempt + 1)
    if run.phase is Phase.RUNNING:
        return _close_attempt(run, AttemptStatus.CANCELLED, None, now_ms)
    return run
