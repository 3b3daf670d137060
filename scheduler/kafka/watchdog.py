"""Blocking client calls under a deadline: a call that never returns ends the process.

Librdkafka has open hangs (a transaction call while a coordinator is taken away, a close while
brokers are gone), and a thread that hangs in it cannot be interrupted. A process that ends is
started again; one that hangs keeps its partitions by heartbeats and does nothing for them.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scheduler.errors import ExitCode

TICK_S = 0.25
"""How exactly a deadline is kept; nobody waits for it, it only bounds a hang."""

FROZEN_TICKS = 4
"""A tick counts for this many at most: a process that was stopped did not hang."""


def end_process(line: str) -> None:
    """Write one line to standard error and end at once, without any clean-up that may hang."""
    os.write(2, f"{line}\n".encode())
    os._exit(ExitCode.WATCHDOG)


class Watchdog:
    """Guards calls of any number of threads with one daemon thread.

    Args:
        end: what to do when a guarded call outlives its deadline; gets one line for people.
    """

    def __init__(self, end: Callable[[str], None] = end_process) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._left: dict[int, tuple[str, float, float]] = {}
        self._number = 0
        self._pid = 0
        self._ran_s = 0.0

    @contextmanager
    def guard(self, name: str, deadline_s: float) -> Iterator[None]:
        """End the process if the body takes longer than ``deadline_s`` seconds of running."""
        with self._lock:
            self._start_once()
            self._number += 1
            number = self._number
            self._left[number] = (name, deadline_s, self._ran_s + deadline_s)
        try:
            yield
        finally:
            with self._lock:
                self._left.pop(number, None)

    def _start_once(self) -> None:
        if self._pid != os.getpid():  # a forked child has no thread of its parent's
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def _run(self) -> None:
        pause = threading.Event()
        before = time.monotonic()
        while True:
            pause.wait(TICK_S)
            now = time.monotonic()
            elapsed, before = now - before, now
            self._check(min(elapsed, FROZEN_TICKS * TICK_S))

    def _check(self, elapsed_s: float) -> None:
        with self._lock:
            self._ran_s += elapsed_s
            hung = [key for key, left in self._left.items() if left[2] < self._ran_s]
            outlived = [self._left.pop(key) for key in hung]
        for name, deadline_s, _ in outlived:
            self._end(f"watchdog: {name} did not return within {deadline_s:g} s; ending")


WATCHDOG = Watchdog()
"""The process's own."""


def run_bounded(name: str, call: Callable[[], object], deadline_s: float) -> bool:
    """Run ``call`` in a daemon thread and wait at most ``deadline_s`` seconds for it.

    For closing: what hangs is left behind, and ends with the process.

    Returns:
        Whether it returned in time.
    """
    thread = threading.Thread(target=call, name=name, daemon=True)
    thread.start()
    thread.join(deadline_s)
    return not thread.is_alive()
