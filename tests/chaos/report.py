"""What a run of chaos showed, in figures. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from scheduler.contract.partition import partition_of
from scheduler.core.instant import format_instant
from tests.checker.history import Fault, History, Violation

SILENT_MS = 3000
"""A partition whose jobs beat each second and that is silent for longer was taken over."""
AFTERMATH_MS = 60_000
"""A broker's start, the session, rebalances and catch-up are over by then."""
SHOWN = 10


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What one fault silenced: partitions of ``jobs``, and for how long after it began."""

    fault: Fault
    gaps_ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict and the figures beside it.

    Attributes:
        broken: ends of processes that no fault explains.
        lateness_ms: of runs in calm time, to a reader that polls; sorted.
    """

    history: History
    violations: Sequence[Violation]
    broken: Sequence[str]
    take_overs: Sequence[TakeOver]
    lateness_ms: Sequence[int]
    exits: Counter[str]

    @property
    def passed(self) -> bool:
        return not self.violations and not self.broken


def take_overs(history: History, job_partitions: int) -> list[TakeOver]:
    """For each fault, the partitions that fell silent and the time to their next dispatch."""
    sent: dict[int, list[int]] = defaultdict(list)
    for run in history.runs:
        if run.job_id.startswith("steady-"):
            sent[partition_of(run.job_id.encode(), job_partitions)].append(run.sent_ms)
    for times in sent.values():
        times.sort()
    return [
        TakeOver(fault, tuple(sorted(_silences(fault.began_ms, sent.values()))))
        for fault in history.faults
    ]


def calm(lateness: Iterable[tuple[int, int]], faults: Sequence[Fault], since_ms: int) -> list[int]:
    """Lateness of the runs that arrived while no fault was near, sorted."""
    storms = [(fault.began_ms, fault.ended_ms + AFTERMATH_MS) for fault in faults]
    return sorted(
        late_ms
        for arrived_ms, late_ms in lateness
        if arrived_ms >= since_ms and not any(a <= arrived_ms <= b for a, b in storms)
    )


def percentile(ordered: Sequence[int], share: float) -> int:
    """Value below which ``share`` of a sorted sequence lies; -1 for an empty one."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else -1


def text(report: Report) -> str:
    """The report for people."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterable[str]:
    history = report.history
    rules = Counter(violation.rule for violation in report.violations)
    yield f"runs          {len(history.runs)}"
    yield f"retries       {sum(run.attempt > 1 for run in history.runs)}"
    yield f"definitions   {len(history.definitions)}"
    yield f"dead letters  {len(history.dead_letters)}"
    yield f"faults        {len(history.faults)}"
    yield f"duplicates    {rules['dispatched_once']}"
    yield f"missing       {rules['none_missing']}"
    yield f"other faults  {sum(rules.values()) - rules['dispatched_once'] - rules['none_missing']}"
    late = report.lateness_ms
    yield (
        f"lateness      p50 {percentile(late, 0.5)} ms, p99 {percentile(late, 0.99)} ms, "
        f"{len(late)} runs in calm time"
    )
    yield f"exits         {dict(sorted(report.exits.items()))}"
    yield from (_take_over_line(take_over) for take_over in report.take_overs)
    yield from report.broken
    for rule, count in sorted(rules.items()):
        yield f"{rule}: {count}"
        shown = (str(v) for v in report.violations if v.rule == rule)
        yield from (f"    {line}" for line in islice(shown, SHOWN))


def _take_over_line(take_over: TakeOver) -> str:
    fault, gaps = take_over.fault, take_over.gaps_ms
    return (
        f"  {format_instant(fault.began_ms)} {fault.kind:<12} {fault.victim:<12} "
        f"{(fault.ended_ms - fault.began_ms) / 1000:5.1f} s: {len(gaps):3} partitions silent, "
        f"p50 {percentile(gaps, 0.5)} ms, max {percentile(gaps, 1.0)} ms"
    )


def _silences(began_ms: int, partitions: Iterable[Sequence[int]]) -> Iterable[int]:
    for times in partitions:
        following = next((at for at in times if at > began_ms), None)
        if following is not None and following - began_ms > SILENT_MS:
            yield following - began_ms
