"""The figures of a report, from a history made by hand."""

from collections import Counter
from dataclasses import replace

from scheduler.contract.partition import partition_of
from tests.chaos.report import Report, calm, percentile, take_overs, text
from tests.checker import hand_made as made
from tests.checker.history import Fault, Violation

FAULT = Fault("kill", "scheduler-0", 10_000, 10_100)
GAP = replace(
    made.GOOD,
    faults=(FAULT,),
    runs=(
        made.run("steady-0000", 10_000, 0, 0),
        made.run("steady-0000", 21_000, 0, 1),
        made.run("steady-0001", 11_000, 0, 2),
    ),
)


def test_a_silent_partition_counts_from_the_fault() -> None:
    assert partition_of(b"steady-0000", 256) != partition_of(b"steady-0001", 256)
    at_once = replace(GAP, runs=GAP.runs[1:])
    assert take_overs(at_once, 256)[0].gaps_ms == (11_020,)


def test_a_partition_that_goes_on_is_not_silent() -> None:
    assert take_overs(GAP, 256)[0].gaps_ms == ()


def test_calm_time_leaves_out_faults_and_their_aftermath() -> None:
    lateness = [(5_000, 1), (9_000, 30), (10_050, 9000), (70_100, 800), (70_101, 20)]
    assert calm(lateness, [FAULT], since_ms=6_000) == [20, 30]


def test_percentiles_of_few_values() -> None:
    assert percentile([], 0.5) == -1
    assert percentile([5], 0.99) == 5
    assert percentile([1, 2, 3, 4], 0.5) == 3


def test_the_text_names_every_violation() -> None:
    violation = Violation("none_missing", "job@t", "neither ran nor recorded it")
    shown = text(
        Report(GAP, [violation], ["scheduler-1 hung"], take_overs(GAP, 256), [20, 30], made_exits())
    )
    assert "missing       1" in shown
    assert "none_missing: job@t: neither ran nor recorded it" in shown
    assert "scheduler-1 hung" in shown


def made_exits() -> Counter[str]:
    return Counter({"scheduler-0:-9": 1})
