"""Children that are killed, frozen and started again, each with its own state folder."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]
_EXPLAINED = frozenset(
    {ExitCode.OK, ExitCode.CLIENT_FATAL, ExitCode.WATCHDOG, -signal.SIGKILL, -signal.SIGTERM}
)
"""What faults may lead to: asked for, or a client beyond repair and started again."""

STOP_S = 20.0
"""A clean stop commits once and closes its clients; longer than this is a hang."""


@dataclass(slots=True)
class Child:
    """One process of the system under test.

    Attributes:
        exits: how often it ended with which return code, unasked for ends included.
        hung: how often it did not end in `STOP_S` after SIGTERM.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    exits: Counter[int] = field(default_factory=Counter)
    hung: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *self.arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def tend(self) -> None:
        """Start it again if it has ended."""
        if self._process is not None and not self.alive:
            self.exits[self._process.returncode] += 1
            self.start()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            os.kill(self._process.pid, number)

    def end(self, deadline_s: float = STOP_S) -> None:
        """Stop it for good; what does not end by itself is killed and counted as hung."""
        if self._process is None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.hung += 1
            self._process.kill()
            self._process.wait()
        self.exits[self._process.returncode] += 1
        self._process = None


def broken(children: Sequence[Child]) -> list[str]:
    """Ends that no fault explains: a violated invariant, a crash of a library, a hang."""
    ends = [
        f"{child.name} ended {count} times with {_spell(code)}, see {child.log}"
        for child in children
        for code, count in sorted(child.exits.items())
        if code not in _EXPLAINED
    ]
    return ends + [f"{child.name} hung at its stop" for child in children if child.hung]


def _spell(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else ExitCode(code).name


def scheduler(number: int, bootstrap: str, prefix: str, folder: Path) -> Child:
    """A ``duewheel scheduler`` with its own state folder."""
    return _service("scheduler", number, bootstrap, prefix, folder)


def executor(number: int, bootstrap: str, prefix: str, folder: Path) -> Child:
    """A ``duewheel executor`` with its own state folder."""
    return _service("executor", number, bootstrap, prefix, folder)


def _service(service: str, number: int, bootstrap: str, prefix: str, folder: Path) -> Child:
    name = f"{service}-{number}"
    state = folder / name
    state.mkdir(parents=True, exist_ok=True)
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "DUEWHEEL_TOPIC_PREFIX": prefix,
        "DUEWHEEL_STATE_DIR": str(state),
        "PYTHONFAULTHANDLER": "1",  # a crash of a client library names the call it was in
    }
    return Child(name, ["-m", "duewheel", service], environment, folder / f"{name}.log")
