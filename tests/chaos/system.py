"""The system under test: its processes, its steady users, and an observer beside it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from tests.chaos.load import User, define_steady, steady_ids
from tests.chaos.observer import Observer
from tests.chaos.processes import Child, executor, scheduler

STEP_S = 0.05
WARM_UP_S = 90.0
"""From nothing to the first run of every job, on two cores shared with the brokers."""


class NeverReady(Exception):
    """The system did not fire every steady job before anything was done to it."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many of each. Every steady job fires once a second."""

    workers: int = 3
    executors: int = 2
    steady: int = 500


@dataclass(slots=True)
class System:
    """All processes of one Duewheel, owned in one place so that all are ended."""

    folder: Path
    size: Size
    workers: list[Child]
    executors: list[Child]
    user: User
    observer: Observer
    _wait: Event = field(default_factory=Event)

    @staticmethod
    def start(bootstrap: str, prefix: str, folder: Path, size: Size) -> "System":
        """Define the steady jobs and start every process; topics exist already."""
        system = System(
            folder=folder,
            size=size,
            workers=[scheduler(n, bootstrap, prefix, folder) for n in range(size.workers)],
            executors=[executor(n, bootstrap, prefix, folder) for n in range(size.executors)],
            user=User(bootstrap, prefix),
            observer=Observer(bootstrap, prefix),
        )
        define_steady(system.user, size.steady)
        system.user.flush()
        for child in system.children:
            child.start()
        return system

    @property
    def children(self) -> list[Child]:
        return [*self.workers, *self.executors]

    def warm_up(self) -> int:
        """Wait until every steady job fires; the instant from which calm time counts.

        Raises:
            NeverReady: some never did.
        """
        started_ms = now_ms()
        if not self.until(lambda: self.reached(started_ms), WARM_UP_S):
            silent = self.observer.behind(steady_ids(self.size.steady), started_ms)
            raise NeverReady(f"{len(silent)} jobs never fired; logs in {self.folder}")
        return now_ms()

    def reached(self, instant_ms: int) -> bool:
        """Every steady job was dispatched for ``instant_ms`` or later."""
        return not self.observer.behind(steady_ids(self.size.steady), instant_ms)

    def until(self, condition: Callable[[], bool], deadline_s: float) -> bool:
        """Tend the processes until the condition holds; whether it did in time."""
        until_s = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > until_s:
                return False
            self.tend()
        return True

    def tend(self) -> None:
        """Start again what has ended, and wait a moment."""
        for child in self.children:
            child.tend()
        self._wait.wait(STEP_S)

    def close(self) -> list[tuple[int, int]]:
        """End every process; the lateness observed."""
        for child in self.children:
            child.end()
        return self.observer.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
