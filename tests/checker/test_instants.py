"""Nominal instants, against brute force."""

from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.definition import CronSpec, DstGap, DstOverlap, EverySpec
from tests.checker.instants import instants

SMALL = st.integers(min_value=0, max_value=300)


@given(every=st.integers(1, 50), anchor=SMALL, anchored=st.booleans(), first=SMALL, last=SMALL)
def test_intervals_are_those_of_a_search(
    every: int, anchor: int, anchored: bool, first: int, last: int
) -> None:
    spec = EverySpec(every, anchor, anchored=anchored)
    expected = [
        ms
        for ms in range(first, last + 1)
        if (ms - anchor) % every == 0 and (ms >= anchor or not anchored)
    ]
    assert list(instants(spec, first, last)) == expected


def test_both_ends_of_a_cron_range_belong_to_it() -> None:
    spec = CronSpec("*/5 * * * * *", "UTC", DstGap.SKIP, DstOverlap.BOTH)
    assert list(instants(spec, 5000, 15_000)) == [5000, 10_000, 15_000]
    assert list(instants(spec, 5001, 14_999)) == [10_000]
