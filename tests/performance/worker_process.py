"""A ``duewheel`` process under a bench, watched through the events it logs as JSON lines."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

STOP_S = 30.0
"""For a clean stop; then the process is killed."""


@dataclass(frozen=True, slots=True)
class Event:
    """A line the process logged.

    Attributes:
        name: its ``event`` field.
        at_s: when it was read here, seconds of the monotonic clock.
        fields: all of it.
    """

    name: str
    at_s: float
    fields: Mapping[str, Any]


class WorkerProcess:
    """A running ``duewheel scheduler`` or ``duewheel executor``."""

    def __init__(self, command: str, bootstrap: str, prefix: str, state: Path) -> None:
        self.started_s = time.monotonic()
        self.last_lines: deque[str] = deque(maxlen=20)
        self._events: list[Event] = []
        self._changed = threading.Condition()
        self._ended = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "duewheel", command],
            env=_environment(bootstrap, prefix, state),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reader.start()

    def wait_for(self, name: str, deadline_s: float, count: int = 1) -> Event:
        """The ``count``-th event called ``name``.

        Raises:
            TimeoutError: it did not come in time; carries the last lines of the log.
            RuntimeError: the process ended before; likewise.
        """
        return self.wait_until(lambda event: event.name == name, name, deadline_s, count)

    def wait_until(
        self, wanted: Callable[[Event], bool], what: str, deadline_s: float, count: int = 1
    ) -> Event:
        """The ``count``-th event that is ``wanted``; raises as `wait_for` does."""
        end_s = time.monotonic() + deadline_s
        with self._changed:
            while len(found := [event for event in self._events if wanted(event)]) < count:
                if self._ended:
                    code = self._process.wait(STOP_S)
                    raise RuntimeError(self._report(f"ended ({code}) before {what}"))
                if not self._changed.wait(end_s - time.monotonic()):
                    raise TimeoutError(self._report(f"no {what} within {deadline_s:g} s"))
        return found[count - 1]

    def stop(self) -> int:
        """Ask the process to end (SIGTERM), kill it after `STOP_S`; returns its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reader.join(STOP_S)
        return self._process.wait(STOP_S)

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self, output: IO[str] | None) -> None:
        for line in output or ():
            self.last_lines.append(line.rstrip())
            event = _parse(line)
            if event is not None:
                with self._changed:
                    self._events.append(event)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _report(self, problem: str) -> str:
        lines = "\n    ".join(self.last_lines)
        return f"{' '.join(map(str, self._process.args))}: {problem}; its last lines:\n    {lines}"  # type: ignore[arg-type]


def _environment(bootstrap: str, prefix: str, state: Path) -> dict[str, str]:
    return {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "DUEWHEEL_TOPIC_PREFIX": prefix,
        "DUEWHEEL_STATE_DIR": str(state),
        "PYTHONUNBUFFERED": "1",
    }


def _parse(line: str) -> Event | None:
    try:
        fields = json.loads(line)
        return Event(str(fields["event"]), time.monotonic(), fields)
    except (ValueError, KeyError, TypeError):
        return None
