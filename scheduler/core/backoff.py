"""How long to wait before the next attempt."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

DELAY_MS_MAX = 7 * 86_400_000
"""A delayed run waits at most 7 days (contract): ``runs-retry`` keeps its records for 8."""


def backoff_ms(attempt: int, base_seconds: int, cap_seconds: int, chance: "Random") -> int:
    """Delay before attempt ``attempt + 1``: uniform in 0..min(cap, base * 2^attempt), in ms.

    Source: "full jitter" (M. Brooker, Exponential Backoff and Jitter, 2015): the whole delay is
    drawn, so that runs that failed together do not come back together.

    Args:
        attempt: number of the attempt that failed, from 1.
        base_seconds: scale of the first delay.
        cap_seconds: no delay is longer.
        chance: where chance comes from.
    """
    doublings = min(attempt, cap_seconds.bit_length())  # more than these exceed any cap
    ceiling_s = min(cap_seconds, base_seconds << doublings)
    return chance.randint(0, ceiling_s * 1000)
