"""Child processes that are kept running, and ended together.

A child that ends with a code that says "start me again" (see docs/operations.md) is started
again after a pause; any other end is final and ends `duewheel up` with it. Each child leads a
session of its own, so that Ctrl-C in the terminal reaches the supervisor alone, which then stops
its children in order.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from scheduler.errors import ConfigError, ExitCode

STOP_S = 20.0
"""Longer than a worker's own deadline for a clean stop."""

PAUSE_S = (1.0, 2.0, 5.0)
"""Pause before the first, the second and every later restart in a row."""

CALM_S = 60.0
"""A child that ran for so long starts with the shortest pause again."""

RESTART_CODES = frozenset({ExitCode.CLIENT_FATAL, ExitCode.WATCHDOG, ExitCode.INVARIANT})


@dataclass(slots=True)
class Child:
    """One supervised process.

    Attributes:
        name: for people: ``scheduler``.
        command: its command line.
        environment: its whole environment.
        log: file its output is appended to.
        restarts: how often it was started again.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    restarts: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _started_s: float = 0.0
    _start_again_s: float | None = None
    _in_a_row: int = 0

    @property
    def pid(self) -> int | None:
        """Process id while it runs, else ``None``."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process; its output goes to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        output: IO[bytes]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started_s = time.monotonic()
        self._start_again_s = None

    def look(self, now_s: float) -> str | None:
        """Notice an end, and start again what is due to be.

        Args:
            now_s: monotonic time, seconds.

        Returns:
            A line for people when something happened.

        Raises:
            ConfigError: it ended for a reason that a restart would not mend.
        """
        if self._start_again_s is not None:
            if now_s < self._start_again_s:
                return None
            self.restarts += 1
            self.start()
            return f"{self.name} started again (process {self.pid})"
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        if not may_restart(code):
            raise ConfigError(f"{self.name} ended with {code_text(code)}; see {self.log}")
        return self._plan_restart(code, now_s)

    def stop(self) -> None:
        """Ask the process to end."""
        self._start_again_s = None
        self._signal(signal.SIGTERM)

    def wait(self, until_s: float) -> None:
        """Wait for the end until a monotonic instant, then kill what is left of its session."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.1, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _plan_restart(self, code: int, now_s: float) -> str:
        calm = now_s - self._started_s >= CALM_S
        self._in_a_row = 0 if calm else min(self._in_a_row + 1, len(PAUSE_S))
        pause_s = PAUSE_S[max(0, self._in_a_row - 1)]
        self._start_again_s = now_s + pause_s
        return f"{self.name} ended with {code_text(code)}; again in {pause_s:g} s ({self.log})"

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def may_restart(code: int) -> bool:
    """Whether a process that ended with ``code`` is worth starting again.

    Killed by a signal (negative) is: somebody or the kernel took it away.
    """
    return code < 0 or code in RESTART_CODES


def code_text(code: int) -> str:
    """An exit code for people.

    >>> code_text(3), code_text(-9), code_text(77)
    ('exit code 3 (CONFIG)', 'signal 9 (SIGKILL)', 'exit code 77')
    """
    if code < 0:
        return f"signal {-code} ({signal.Signals(-code).name})"
    known = {int(each): each.name for each in ExitCode}
    return f"exit code {code} ({known[code]})" if code in known else f"exit code {code}"


def stop_all(children: Sequence[Child]) -> None:
    """End all children: everyone is asked first, then waited for."""
    for child in children:
        child.stop()
    until_s = time.monotonic() + STOP_S
    for child in children:
        child.wait(until_s)
