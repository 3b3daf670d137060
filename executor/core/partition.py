"""The state of one runs-partition in memory, and what a decision in the making sees of it.

`Partition.apply` is the only thing that changes state, live and on recovery. Decisions are made
against a `Draft`: an overlay holding what earlier decisions of the same transaction changed.
After the commit its changes are applied; when the transaction failed it is thrown away.

Memory: a few hundred bytes per job and per open run, plus the open runs' commands.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Protocol

from executor.core.state import (
    FinishedRun,
    JobSummary,
    OpenRun,
    StateChange,
    StateValue,
    forget_at_ms,
)


class RunStates(Protocol):
    """What a decision reads."""

    def get(self, key: str) -> StateValue | None:
        """The value under a run id or a job id."""
        ...

    def open_runs(self, job_id: str) -> list[OpenRun]:
        """The job's open runs, by run id."""
        ...


class Partition:
    """Committed state of one partition. Cost of every method: constant, or its result's size."""

    def __init__(self) -> None:
        self._values: dict[str, StateValue] = {}
        self._open_of_job: dict[str, set[str]] = {}
        self._ageing: list[tuple[int, str]] = []
        self._watched: set[str] = set()

    def apply(self, change: StateChange) -> None:
        """Take over one record of ``run-state``."""
        self._unlink(change.key)
        value = change.value
        if value is None:
            return
        self._values[change.key] = value
        if isinstance(value, OpenRun):
            self._open_of_job.setdefault(value.command.job_id, set()).add(change.key)
        self._watch(change.key, forget_at_ms(value))

    def get(self, key: str) -> StateValue | None:
        """The value under a run id or a job id."""
        return self._values.get(key)

    def open_runs(self, job_id: str) -> list[OpenRun]:
        """The job's open runs, by run id."""
        return [run for run_id in sorted(self._open_of_job.get(job_id, ()))
                if isinstance(run := self._values[run_id], OpenRun)]  # fmt: skip

    def every_open_run(self) -> list[OpenRun]:
        """All open runs, by run id. Cost: linear in them."""
        return [run for job_id in sorted(self._open_of_job) for run in self.open_runs(job_id)]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[str, StateValue]]:
        return iter(sorted(self._values.items()))

    def forgettable(self, now_ms: int, count_max: int) -> list[StateChange]:
        """Tombstones of what has been remembered long enough, oldest first.

        What is returned is not proposed again before it has aged anew: the caller commits it,
        or proposes it again after `remember`.
        """
        changes: list[StateChange] = []
        while self._ageing and self._ageing[0][0] <= now_ms and len(changes) < count_max:
            _, key = heapq.heappop(self._ageing)
            self._watched.discard(key)
            value = self._values.get(key)
            due_ms = None if value is None else forget_at_ms(value)
            if due_ms is None:
                continue
            if due_ms > now_ms or self._still_used(key):
                self._watch(key, max(due_ms, now_ms + 1))
            else:
                changes.append(StateChange(key, None))
        return changes

    def remember(self, changes: Iterable[StateChange]) -> None:
        """Put back what `forgettable` gave: its tombstones were not committed."""
        for change in changes:
            value = self._values.get(change.key)
            self._watch(change.key, None if value is None else forget_at_ms(value))

    def _still_used(self, key: str) -> bool:
        return bool(self._open_of_job.get(key))

    def _watch(self, key: str, due_ms: int | None) -> None:
        if due_ms is not None and key not in self._watched:
            self._watched.add(key)
            heapq.heappush(self._ageing, (due_ms, key))

    def _unlink(self, key: str) -> None:
        value = self._values.pop(key, None)
        if isinstance(value, OpenRun):
            runs = self._open_of_job[value.command.job_id]
            runs.discard(key)
            if not runs:
                del self._open_of_job[value.command.job_id]


class Draft:
    """A partition as it will be if this transaction commits."""

    def __init__(self, base: RunStates) -> None:
        self._base = base
        self._changed: dict[str, StateValue | None] = {}

    def stage(self, changes: Iterable[StateChange]) -> None:
        """Let later decisions of this transaction see ``changes``."""
        for change in changes:
            self._changed[change.key] = change.value

    def get(self, key: str) -> StateValue | None:
        """The value under a run id or a job id."""
        return self._changed[key] if key in self._changed else self._base.get(key)

    def open_runs(self, job_id: str) -> list[OpenRun]:
        """The job's open runs, by run id."""
        runs = {run.run_id: run for run in self._base.open_runs(job_id)}
        for key, value in self._changed.items():
            runs.pop(key, None)
            if isinstance(value, OpenRun) and value.command.job_id == job_id:
                runs[key] = value
        return [runs[run_id] for run_id in sorted(runs)]

    def changes(self) -> list[StateChange]:
        """The last change of each key: what ``run-state`` needs to be told."""
        return [StateChange(key, value) for key, value in self._changed.items()]


def known_run(states: RunStates, job_id: str, run_id: str) -> OpenRun | FinishedRun | None:
    """What is known of a run key: open, remembered by itself, or within its job's summary."""
    value = states.get(run_id)
    if isinstance(value, OpenRun | FinishedRun):
        return value
    return summary_of(states, job_id).find(run_id)


def summary_of(states: RunStates, job_id: str) -> JobSummary:
    """The job's summary, an empty one where there is none."""
    value = states.get(job_id)
    return value if isinstance(value, JobSummary) else JobSummary(job_id)
