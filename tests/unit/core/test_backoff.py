"""Full jitter: uniform below a doubling ceiling."""

import random

import pytest

from scheduler.core.backoff import backoff_ms


@pytest.mark.parametrize(("attempt", "ceiling_s"), [(1, 20), (2, 40), (8, 2560), (9, 3600)])
def test_the_ceiling_doubles_up_to_the_cap(attempt: int, ceiling_s: int) -> None:
    chance = random.Random(1)
    delays = [backoff_ms(attempt, 10, 3600, chance) for _ in range(2_000)]
    assert min(delays) < 0.01 * ceiling_s * 1000
    assert 0.99 * ceiling_s * 1000 < max(delays) <= ceiling_s * 1000
    assert abs(sum(delays) / len(delays) / 1000 - ceiling_s / 2) < 0.05 * ceiling_s


def test_a_hundred_attempts_cost_no_more_than_one() -> None:
    assert 0 <= backoff_ms(100, 604_800, 604_800, random.Random(1)) <= 604_800_000


def test_no_delay_where_none_is_wanted() -> None:
    assert backoff_ms(5, 0, 3600, random.Random(1)) == 0
