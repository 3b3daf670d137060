"""The stage: brokers, topics, processes under test, users and observer; and what happens on it."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random
from threading import Event

from devkafka.cluster import Cluster, create
from devkafka.provide import jar_cache
from scheduler.contract.topics import load_catalog
from scheduler.kafka.admin import KafkaAdmin, apply
from tests.chaos import report as reports
from tests.chaos.load import Churn, User, define_steady, steady_ids
from tests.chaos.observer import Observer
from tests.chaos.plan import FaultKind, PlannedFault
from tests.chaos.processes import ROOT, Child, broken, executor, scheduler
from tests.chaos.target import FlakyTarget
from tests.checker.history import Fault
from tests.checker.read import history_of, read_topics
from tests.checker.rules import check

PREFIX = "chaos."
STEP_S = 0.05
WARM_UP_S = 60.0
"""From nothing to the first run of every job, on two cores shared with the brokers."""


class Scenario(StrEnum):
    """What users do meanwhile."""

    PLAIN = "plain"
    """Nothing: every (job, second) is due exactly once."""
    CHURN = "churn"
    """Edits, deletions, re-creations, one-shots and failing runs, with executors."""


@dataclass(frozen=True, slots=True)
class Config:
    """One run of chaos.

    Attributes:
        seconds: how long faults go on.
        settle_s: how long it may then take until everything due is decided and finished.
    """

    seed: int
    seconds: float
    scenario: Scenario
    faults: Sequence[PlannedFault]
    brokers: int = 1
    workers: int = 3
    executors: int = 2
    steady: int = 500
    settle_s: float = 60.0


class NeverReady(Exception):
    """The system did not fire every job before the first fault."""


@dataclass(slots=True)
class Stage:
    """Everything that runs, owned in one place so that all of it is ended."""

    config: Config
    folder: Path
    cluster: Cluster
    workers: list[Child]
    executors: list[Child]
    target: FlakyTarget
    user: User
    observer: Observer
    faults: list[Fault] = field(default_factory=list)
    _wait: Event = field(default_factory=Event)

    @property
    def children(self) -> list[Child]:
        return [*self.workers, *self.executors]

    def warm_up(self) -> int:
        """Wait until every steady job fires; the instant from which calm time counts."""
        started_ms = _now_ms()
        if not self._until(lambda: self._reached(started_ms), WARM_UP_S):
            silent = self.observer.behind(steady_ids(self.config.steady), started_ms)
            raise NeverReady(f"{len(silent)} jobs never fired; logs in {self.folder}")
        return _now_ms()

    def strike(self) -> int:
        """Let all faults happen while users go on; the instant at which users stop."""
        churn = Churn(self.user, Random(self.config.seed), self.target)
        events = sorted(self._events(), key=lambda event: event[0])
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < self.config.seconds:
            while events and events[0][0] <= passed_s:
                events.pop(0)[1]()
            if self.config.scenario is Scenario.CHURN:
                churn.step(_now_ms())
            self._tend()
        for _, action in events:
            action()
        self.user.flush()
        return _now_ms()

    def settle(self, stopped_ms: int) -> None:
        """Wait until all that was due by ``stopped_ms`` is decided, and every run finished."""
        self._until(lambda: self._reached(stopped_ms) and self._finished(), self.config.settle_s)

    def close(self) -> list[tuple[int, int]]:
        """End everything but the brokers; the lateness observed."""
        for child in self.children:
            child.end()
        self.target.close()
        return self.observer.close()

    def _reached(self, instant_ms: int) -> bool:
        return not self.observer.behind(steady_ids(self.config.steady), instant_ms)

    def _finished(self) -> bool:
        return self.config.scenario is Scenario.PLAIN or not self.observer.open_runs()

    def _until(self, condition: Callable[[], bool], deadline_s: float) -> bool:
        until_s = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > until_s:
                return False
            self._tend()
        return True

    def _tend(self) -> None:
        for child in self.children:
            child.tend()
        self._wait.wait(STEP_S)

    def _events(self) -> list[tuple[float, Callable[[], None]]]:
        """Two events a fault: where it begins and where it ends."""
        events: list[tuple[float, Callable[[], None]]] = []
        for fault in self.config.faults:
            began: list[int] = []
            events.append((fault.at_s, partial(self._begin, fault, began)))
            events.append((fault.at_s + fault.lasts_s, partial(self._end, fault, began)))
        return events

    def _begin(self, fault: PlannedFault, began: list[int]) -> None:
        began.append(_now_ms())
        match fault.kind:
            case FaultKind.KILL:
                self.workers[fault.victim].signal(signal.SIGKILL)
            case FaultKind.STOP:
                self.workers[fault.victim].signal(signal.SIGTERM)
            case FaultKind.FREEZE:
                self.workers[fault.victim].signal(signal.SIGSTOP)
            case FaultKind.BROKER_KILL:
                self.cluster.brokers[fault.victim].kill()
            case FaultKind.BROKER_STOP:
                self.cluster.brokers[fault.victim].stop()

    def _end(self, fault: PlannedFault, began: list[int]) -> None:
        if fault.kind is FaultKind.FREEZE:
            self.workers[fault.victim].signal(signal.SIGCONT)
        if fault.on_broker:
            self.cluster.brokers[fault.victim].start()
        victim = "broker" if fault.on_broker else "scheduler"
        self.faults.append(Fault(fault.kind, f"{victim}-{fault.victim}", began[0], _now_ms()))


def run(config: Config, folder: Path) -> reports.Report:
    """Play the whole piece in ``folder`` and judge it.

    Raises:
        NeverReady: the system never came up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cluster = create(folder / "kafka", jar_cache(ROOT), config.brokers)
    cluster.start()
    try:
        stage = _set(config, folder, cluster)
        try:
            calm_ms = stage.warm_up()
            stopped_ms = stage.strike()
            stage.settle(stopped_ms)
        finally:
            lateness = stage.close()
        return _judge(stage, stopped_ms, reports.calm(lateness, stage.faults, calm_ms))
    finally:
        cluster.stop()


def _set(config: Config, folder: Path, cluster: Cluster) -> Stage:
    bootstrap = cluster.bootstrap
    apply(load_catalog(prefix=PREFIX), KafkaAdmin({"bootstrap.servers": bootstrap}))
    churn = config.scenario is Scenario.CHURN
    stage = Stage(
        config=config,
        folder=folder,
        cluster=cluster,
        workers=[scheduler(n, bootstrap, PREFIX, folder) for n in range(config.workers)],
        executors=[
            executor(n, bootstrap, PREFIX, folder) for n in range(config.executors if churn else 0)
        ],
        target=FlakyTarget(),
        user=User(bootstrap, PREFIX),
        observer=Observer(bootstrap, PREFIX),
    )
    define_steady(stage.user, config.steady)
    stage.user.flush()
    for child in stage.children:
        child.start()
    return stage


def _judge(stage: Stage, settled_ms: int, lateness_ms: Sequence[int]) -> reports.Report:
    records = read_topics(stage.cluster.bootstrap, PREFIX, time.monotonic)
    churn = stage.config.scenario is Scenario.CHURN
    history = history_of(records, settled_ms, stage.faults, executors=churn)
    exits: Counter[str] = Counter()
    for child in stage.children:
        exits.update({f"{child.name}:{code}": count for code, count in child.exits.items()})
    job_partitions = load_catalog(prefix=PREFIX).spec("jobs").partitions
    return reports.Report(
        history=history,
        violations=check(history),
        broken=broken(stage.children),
        take_overs=reports.take_overs(history, job_partitions),
        lateness_ms=lateness_ms,
        exits=exits,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
