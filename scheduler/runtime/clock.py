"""The system clock: the only file of the project that reads one."""

import time


class SystemClock:
    """Real time, as `Clock` of core/ports.py wants it."""

    def now_ms(self) -> int:
        """Wall-clock time, epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never steps."""
        return time.monotonic_ns() // 1_000_000
