"""The broker-time guard: the cursor never passes broker time + 1 s.

A worker whose clock runs ahead would declare instants decided that are still to come. The
broker's clock is learned from the append time of our own records in ``cursors``
(LogAppendTime). Since a record was appended before its acknowledgement came back, append time
plus what has passed since (monotonic) never exceeds the broker's time now.
"""

AHEAD_MS = 1_000
"""How far the cursor may be ahead of what is known of broker time."""

JUMP_MS = 500
"""Wall against monotonic: a step of more than this makes the sample void. Half the allowance."""


class BrokerTime:
    """What is known of the broker's clock. Steps of the local wall clock void it."""

    def __init__(self) -> None:
        self._sample: tuple[int, int] | None = None
        self._skew: int | None = None

    def learn(self, appended_ms: int, monotonic_ms: int) -> None:
        """A record of ours was appended at ``appended_ms``; known since ``monotonic_ms``."""
        self._sample = (appended_ms, monotonic_ms)

    def hand_ms(self, now_ms: int, monotonic_ms: int) -> int | None:
        """How far the cursor may go now; ``None`` while broker time is not known."""
        skew = now_ms - monotonic_ms
        if self._skew is not None and abs(skew - self._skew) > JUMP_MS:
            self._sample = None
        self._skew = skew
        if self._sample is None:
            return None
        appended, at = self._sample
        return min(now_ms, appended + (monotonic_ms - at) + AHEAD_MS)

    def age_ms(self, monotonic_ms: int) -> int | None:
        """Age of the newest sample; ``None`` without one."""
        return None if self._sample is None else monotonic_ms - self._sample[1]
