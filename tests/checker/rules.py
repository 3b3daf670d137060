"""The rules that every history has to keep. Pure; each returns what breaks it.

Read top to bottom: `check` applies all of `RULES`; each rule's docstring is its statement.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

from scheduler.core.instant import format_instant
from tests.checker.history import (
    Definition,
    Delayed,
    History,
    Outcome,
    Run,
    RunKey,
    Violation,
)
from tests.checker.versions import Version, versions

Finding = tuple[RunKey, str]
"""What is wrong with which run; ``check`` adds the rule's name."""
Rule = Callable[[History], Iterator[Finding]]


class _Placed(Protocol):
    """A record of a run: what it is about and where it lies."""

    @property
    def key(self) -> RunKey: ...
    @property
    def definition_offset(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


_Record = TypeVar("_Record", bound=_Placed)

AHEAD_MS = 1000
"""The cursor never passes broker time by more, so no version begins later than that."""
TRANSACTION_MS = 3000
"""The broker aborts a transaction after this long; its records are at most so far apart."""

_SCHEDULED = frozenset({"schedule", "misfire"})
_FREE = frozenset({"manual", "replay", "backfill"})
"""Triggers of people: these runs may exist apart from any version in force."""
_FINAL = frozenset({"succeeded", "dead", "cancelled", "skipped", "missed"})
_NOT_RUN = frozenset({"missed", "skipped"})
_ANSWERS = frozenset({"active", "paused", "deleted", "rejected"})


def check(history: History) -> list[Violation]:
    """Everything that is wrong with a history; empty when it keeps all rules."""
    return [
        Violation(rule.__name__, _subject(key), detail)
        for rule in RULES
        for key, detail in rule(history)
    ]


def dispatched_once(history: History) -> Iterator[Finding]:
    """Each (run key, attempt, deferral, definition) is dispatched once."""
    places: dict[tuple[RunKey, int, int, int], list[Run]] = defaultdict(list)
    for run in history.runs:
        places[run.key, run.attempt, run.deferral, run.definition_offset].append(run)
    for (key, attempt, deferral, offset), runs in places.items():
        if len(runs) > 1:
            where = ", ".join(_place(run) for run in runs)
            yield (key, f"attempt {attempt}.{deferral} of {offset} at {where}")


def none_missing(history: History) -> Iterator[Finding]:
    """Each nominal instant of each version was dispatched, or recorded as not run."""
    sent = {(run.job_id, run.scheduled_ms) for run in history.runs if run.command_id is None}
    spans = _spans(history)
    for version in _all_versions(history):
        if not version.fires:
            continue
        job_id = version.definition.job_id
        for nominal_ms in version.between(0, history.settled_ms - _jitter_ms(version.definition)):
            covered = any(first <= nominal_ms <= last for first, last in spans.get(job_id, ()))
            if (job_id, nominal_ms) not in sent and not covered:
                yield (
                    (job_id, nominal_ms, None),
                    f"version {_span(version)} neither ran nor recorded it",
                )


def not_early(history: History) -> Iterator[Finding]:
    """Nothing is dispatched before its effective instant, or before a delayed run may return."""
    definitions = {(d.job_id, d.offset): d for d in history.definitions}
    holds = {_delayed_id(d): d.not_before_ms for d in history.delayed}
    for run in history.runs:
        not_before_ms = max(run.run_at_ms, holds.get(_run_id(run), run.run_at_ms))
        if run.sent_ms < not_before_ms:
            yield (run.key, f"sent {not_before_ms - run.sent_ms} ms early, {_place(run)}")
        definition = definitions.get((run.job_id, run.definition_offset))
        if definition is not None and run.command_id is None:
            effective_ms = run.scheduled_ms + _jitter_ms(definition)
            if run.run_at_ms < effective_ms:
                yield (run.key, f"run_at {effective_ms - run.run_at_ms} ms early")


def within_version(history: History) -> Iterator[Finding]:
    """A scheduled run lies on the schedule of the version it names, between its begin and end."""
    named = {(v.definition.job_id, v.definition.offset): v for v in _all_versions(history)}
    for run in history.runs:
        if run.command_id is not None or run.trigger in _FREE:
            continue
        version = named.get((run.job_id, run.definition_offset))
        if version is None:
            yield (run.key, f"definition {run.definition_offset} was never taken up")
        elif not (version.fires and version.between(run.scheduled_ms, run.scheduled_ms)):
            yield (run.key, f"not an instant of version {_span(version)}, {_place(run)}")


def versions_begin(history: History) -> Iterator[Finding]:
    """A version begins at its append time; after a predecessor, at or before its acceptance."""
    for chain in versions(history).values():
        earlier: Version | None = None
        for version in chain:
            begin_ms, appended_ms = version.begin_ms, version.definition.appended_ms
            first_ms = appended_ms if earlier is None else max(appended_ms, earlier.begin_ms)
            accepted_ms = max(first_ms, version.status.written_ms + AHEAD_MS)
            last_ms = first_ms if earlier is None else accepted_ms
            if not first_ms <= begin_ms <= last_ms:
                yield (
                    (version.definition.job_id, begin_ms, None),
                    f"version {version.definition.offset} must begin in "
                    f"[{format_instant(first_ms)}, {format_instant(last_ms)}]",
                )
            earlier = version


def definitions_answered(history: History) -> Iterator[Finding]:
    """Each user's record of ``jobs`` is answered in ``job-status``: taken up or refused."""
    answered = {(s.job_id, s.definition_offset) for s in history.statuses if s.state in _ANSWERS}
    for definition in history.definitions:
        if definition.appended_ms > history.settled_ms:
            continue
        if (definition.job_id, definition.offset) not in answered:
            yield (
                (definition.job_id, definition.appended_ms, None),
                f"no status names offset {definition.offset}",
            )


def decided_once(history: History) -> Iterator[Finding]:
    """An instant recorded as missed is not dispatched as well, nor recorded twice; counts agree.

    A retry that a deletion made void is recorded as missed after its first attempt: no conflict.
    """
    named = {(v.definition.job_id, v.definition.offset): v for v in _all_versions(history)}
    runs = defaultdict(list)
    for run in history.runs:
        if run.trigger in _SCHEDULED and run.command_id is None:
            runs[run.job_id].append(run)
    void = {(d.key, d.definition_offset) for d in history.delayed if d.attempt > 1}
    missed = [
        o
        for o in history.outcomes
        if o.status == "missed"
        and o.command_id is None
        and not (o.reason == "deleted" and (o.key, o.definition_offset) in void)
    ]
    for outcome in missed:
        for run in runs[outcome.job_id]:
            same = run.definition_offset == outcome.definition_offset
            if same and outcome.scheduled_ms <= run.scheduled_ms <= outcome.through_ms:
                yield (run.key, f"dispatched {_place(run)} and missed ({outcome.reason})")
        version = named.get((outcome.job_id, outcome.definition_offset))
        if version is not None and _count(version, outcome) != outcome.count:
            yield (
                outcome.key,
                f"a record of {outcome.count} instants spans "
                f"{_count(version, outcome)} of version {_span(version)}",
            )
    yield from _overlaps(missed, named)


def attempts_increase(history: History) -> Iterator[Finding]:
    """Attempts and deferrals of a run strictly increase; its history never steps back."""
    for run_key, runs in _by_version(history.runs).items():
        for before, after in pairwise(runs):
            if (after.attempt, after.deferral) <= (before.attempt, before.deferral):
                yield (
                    run_key,
                    f"{after.attempt}.{after.deferral} at {_place(after)} after "
                    f"{before.attempt}.{before.deferral}",
                )
    attempted = [row for row in history.outcomes if row.attempt > 0]  # 0: a deletion made it void
    for run_key, rows in _by_version(attempted).items():
        for earlier, later in pairwise(rows):
            if later.attempt < earlier.attempt:
                yield (run_key, f"history goes from attempt {earlier.attempt} to {later.attempt}")


def silent_after_deletion(history: History) -> Iterator[Finding]:
    """Once ``job-status`` said deleted, no older definition of the job fires again.

    Exactly, by the order of ``runs``, where the deletion is marked there too; else by time, with
    the length of one transaction between the two records.
    """
    deletions = defaultdict(list)
    for version in _all_versions(history):
        if version.definition.deletes:
            deletions[version.definition.job_id].append(version)
    marks = defaultdict(list)
    for mark in sorted(history.deleted, key=lambda m: m.offset):
        marks[mark.job_id].append(mark)
    for run in history.runs:
        if run.trigger in _FREE:
            continue
        ends = deletions.get(run.job_id, [])
        for number, deletion in enumerate(ends):
            if deletion.definition.offset < run.definition_offset:
                continue
            late = run.sent_ms > deletion.status.written_ms + TRANSACTION_MS
            if len(marks[run.job_id]) == len(ends):
                late = late or run.offset > marks[run.job_id][number].offset
            if late:
                yield (
                    run.key,
                    f"{_place(run)} of definition {run.definition_offset}, deleted "
                    f"by {deletion.definition.offset}",
                )


def settled_below_kept(history: History) -> Iterator[Finding]:
    """Below a command's ``settled_below`` nothing of its definition, or an older one, is new."""
    scheduled: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(history.runs, key=lambda r: (r.partition, r.offset)):
        if run.command_id is None and run.trigger in _SCHEDULED and run.attempt == 1:
            scheduled[run.job_id].append(run)
    for runs in scheduled.values():
        promises: dict[int, int] = {}
        for run in runs:
            bound_ms = max(
                (ms for offset, ms in promises.items() if offset >= run.definition_offset),
                default=0,
            )
            if run.scheduled_ms < bound_ms and run.deferral == 0:
                yield (run.key, f"{_place(run)}, though {format_instant(bound_ms)} was promised")
            known_ms = promises.get(run.definition_offset, 0)
            promises[run.definition_offset] = max(known_ms, run.settled_below_ms or 0)


def delayed_runs_return(history: History) -> Iterator[Finding]:
    """Each delayed run is dispatched once due, and no retry that was not asked for.

    A run whose job was deleted meanwhile is void.
    """
    sent = {_run_id(run) for run in history.runs}
    asked = {_delayed_id(delayed) for delayed in history.delayed}
    deleted = [d for d in history.definitions if d.deletes]
    last_deletion: dict[str, int] = defaultdict(lambda: -1)
    for deletion in deleted:
        last_deletion[deletion.job_id] = max(last_deletion[deletion.job_id], deletion.offset)
    for delayed in history.delayed:
        due_ms = max(delayed.not_before_ms, delayed.appended_ms)
        void = (
            delayed.trigger not in _FREE
            and delayed.definition_offset < last_deletion[delayed.job_id]
        )
        if due_ms <= history.settled_ms and not void and _delayed_id(delayed) not in sent:
            yield (
                delayed.key,
                f"attempt {delayed.attempt}.{delayed.deferral} was due at {format_instant(due_ms)}",
            )
    for run in history.runs:
        if run.trigger == "retry" and _run_id(run) not in asked:
            yield (run.key, f"attempt {run.attempt} at {_place(run)} was never asked for")


def outcomes_final(history: History) -> Iterator[Finding]:
    """The last record of each run is a final status; ``dispatched`` is one for kind ``none``."""
    if not history.executors:
        return
    last: dict[RunKey, Outcome] = {}
    for outcome in sorted(history.outcomes, key=lambda o: o.offset):
        last[outcome.key] = outcome
    waiting = {d.key for d in history.delayed if d.not_before_ms > history.settled_ms}
    for key, run in {run.key: run for run in history.runs}.items():
        if run.sent_ms > history.settled_ms or key in waiting:
            continue
        final = _FINAL | {"dispatched"} if run.target_kind == "none" else _FINAL
        row = last.get(key)
        if row is None or row.status not in final:
            status = "nothing" if row is None else row.status
            yield (key, f"ends with {status} (target {run.target_kind}, {_place(run)})")


def dead_letters_match(history: History) -> Iterator[Finding]:
    """Each run that died left one dead letter, and each dead letter belongs to one."""
    died = Counter((o.key, o.attempt) for o in history.outcomes if o.status == "dead")
    letters = Counter((d.key, d.attempt) for d in history.dead_letters)
    for (key, attempt), count in (died - letters).items():
        yield (key, f"attempt {attempt} died, {count} dead letters are missing")
    for (key, attempt), count in (letters - died).items():
        yield (key, f"{count} dead letters of attempt {attempt} without a death")


RULES: tuple[Rule, ...] = (
    dispatched_once,
    none_missing,
    not_early,
    within_version,
    versions_begin,
    definitions_answered,
    decided_once,
    attempts_increase,
    silent_after_deletion,
    settled_below_kept,
    delayed_runs_return,
    outcomes_final,
    dead_letters_match,
)


def _all_versions(history: History) -> Iterable[Version]:
    return (version for chain in versions(history).values() for version in chain)


def _jitter_ms(definition: Definition) -> int:
    return 0 if definition.job is None else definition.job.cohort.jitter_ms


def _count(version: Version, outcome: Outcome) -> int:
    return len(version.between(outcome.scheduled_ms, outcome.through_ms))


def _spans(history: History) -> Mapping[str, list[tuple[int, int]]]:
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for outcome in history.outcomes:
        if outcome.status in _NOT_RUN and outcome.command_id is None:
            spans[outcome.job_id].append((outcome.scheduled_ms, outcome.through_ms))
    return spans


def _overlaps(
    missed: Sequence[Outcome], named: Mapping[tuple[str, int], Version]
) -> Iterator[Finding]:
    ordered = sorted(missed, key=lambda o: (o.job_id, o.scheduled_ms))
    for before, after in pairwise(ordered):
        if before.job_id != after.job_id or after.scheduled_ms > before.through_ms:
            continue
        version = named.get((after.job_id, after.definition_offset))
        again = before.definition_offset != after.definition_offset
        if not (again and version is not None and version.is_once):
            yield (after.key, f"missed twice: {before.reason}, {after.reason}")


def _by_version(records: Iterable[_Record]) -> Mapping[RunKey, list[_Record]]:
    """Records of a run key under one definition, in their order in the log.

    A one-shot produced again is the same run key under another definition.
    """
    chains: dict[tuple[RunKey, int], list[_Record]] = defaultdict(list)
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        chains[record.key, record.definition_offset].append(record)
    return {(f"{key[0]}~{offset}", *key[1:]): chain for (key, offset), chain in chains.items()}


def _run_id(run: Run) -> tuple[RunKey, int, int, int]:
    return (run.key, run.attempt, run.deferral, run.definition_offset)


def _delayed_id(delayed: Delayed) -> tuple[RunKey, int, int, int]:
    return (delayed.key, delayed.attempt, delayed.deferral, delayed.definition_offset)


def _span(version: Version) -> str:
    return f"{version.definition.offset} from {format_instant(version.begin_ms)}"


def _place(run: Run) -> str:
    return f"runs[{run.partition}]@{run.offset} {format_instant(run.sent_ms)}"


def _subject(key: RunKey) -> str:
    job_id, scheduled_ms, command_id = key
    manual = f"#{command_id}" if command_id is not None else ""
    return f"{job_id}@{format_instant(scheduled_ms)}{manual}"
