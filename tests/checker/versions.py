"""Which definition governs which nominal instants, from what ``job-status`` said.

A version begins at its ``effective_from`` E (exclusive) and ends at the E of the next record of
its job that was taken up (inclusive). Deletions are versions without instants.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scheduler.core.definition import FOREVER_MS, OnceSpec
from tests.checker.history import Definition, History, Status
from tests.checker.instants import instants

_BEGINS = frozenset({"active", "paused", "deleted"})


@dataclass(frozen=True, slots=True)
class Version:
    """One definition in force.

    Attributes:
        begin_ms: nominal instants at or before it belong to the predecessor.
        end_ms: last nominal instant of it, if its schedule has one (inclusive).
        status: the record that announced it.
    """

    definition: Definition
    status: Status
    begin_ms: int
    end_ms: int

    @property
    def fires(self) -> bool:
        """It is a definition, and not a paused one."""
        return self.definition.job is not None and not self.definition.job.paused

    @property
    def is_once(self) -> bool:
        """A one-shot, whose instant may lie before its beginning."""
        job = self.definition.job
        return job is not None and isinstance(job.cohort.schedule, OnceSpec)

    def between(self, first_ms: int, last_ms: int) -> Sequence[int]:
        """Its nominal instants in ``[first_ms, last_ms]``, whether it is paused or not."""
        job = self.definition.job
        if job is None:
            return ()
        last_ms = min(last_ms, self.end_ms, FOREVER_MS if job.end_ms is None else job.end_ms)
        if self.is_once:
            nominal_ms = job.run_at_ms or 0
            return (nominal_ms,) if first_ms <= nominal_ms <= last_ms else ()
        first_ms = max(first_ms, self.begin_ms + 1, 0 if job.start_ms is None else job.start_ms)
        return instants(job.cohort.schedule, first_ms, last_ms)


def versions(history: History) -> Mapping[str, Sequence[Version]]:
    """The versions of every job, oldest first."""
    definitions = {(d.job_id, d.offset): d for d in history.definitions}
    begun: dict[str, dict[int, Status]] = defaultdict(dict)
    for status in sorted(history.statuses, key=lambda s: s.offset):
        if status.state not in _BEGINS or status.effective_from_ms is None:
            continue
        if status.definition_offset is not None:
            begun[status.job_id].setdefault(status.definition_offset, status)
    return {
        job_id: _chain([(definitions[job_id, offset], status)
                        for offset, status in by_offset.items()
                        if (job_id, offset) in definitions])
        for job_id, by_offset in begun.items()
    }  # fmt: skip


def _chain(taken_up: list[tuple[Definition, Status]]) -> Sequence[Version]:
    begins = [status.effective_from_ms or 0 for _, status in taken_up]
    ends = [later for _, later in pairwise(begins)] + [FOREVER_MS]
    return [
        Version(definition, status, begin_ms, end_ms)
        for (definition, status), begin_ms, end_ms in zip(taken_up, begins, ends, strict=True)
    ]
