"""One run of chaos from beginning to end: start, break, settle, judge."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random

from devkafka.cluster import Cluster, create
from devkafka.provide import jar_cache
from scheduler.contract.topics import load_catalog
from scheduler.kafka.admin import KafkaAdmin, apply
from tests.chaos import report as reports
from tests.chaos.load import Churn
from tests.chaos.plan import FaultKind, PlannedFault
from tests.chaos.processes import ROOT, broken
from tests.chaos.system import Size, System, now_ms
from tests.chaos.target import FlakyTarget
from tests.checker.history import Fault
from tests.checker.read import history_of, read_topics
from tests.checker.rules import check

PREFIX = "chaos."


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
        settle_s: how long it may then take until everything due is decided and finished. An
            executor's runs are attempted again 30 s after it died, and a retry waits up to 8 s.
    """

    seed: int
    seconds: float
    scenario: Scenario
    faults: Sequence[PlannedFault]
    brokers: int = 1
    size: Size = field(default_factory=Size)
    settle_s: float = 90.0


@dataclass(slots=True)
class Stage:
    """A system under faults."""

    config: Config
    cluster: Cluster
    system: System
    target: FlakyTarget
    faults: list[Fault] = field(default_factory=list)

    def strike(self) -> int:
        """Let all faults happen while users go on; the instant at which users stop."""
        churn = Churn(self.system.user, Random(self.config.seed), self.target)
        events = sorted(self._events(), key=lambda event: event[0])
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < self.config.seconds:
            while events and events[0][0] <= passed_s:
                events.pop(0)[1]()
            if self.config.scenario is Scenario.CHURN:
                churn.step(now_ms())
            self.system.tend()
        for _, action in events:
            action()
        self.system.user.flush()
        return now_ms()

    def settle(self, stopped_ms: int) -> None:
        """Wait until all that was due by ``stopped_ms`` is decided, and every run finished.

        What is not by the deadline is for the checker to name.
        """
        self.system.until(
            lambda: self.system.reached(stopped_ms) and self._finished(), self.config.settle_s
        )

    def _finished(self) -> bool:
        return not self.system.executors or not self.system.observer.open_runs()

    def _events(self) -> list[tuple[float, Callable[[], None]]]:
        """Two events a fault: where it begins and where it ends."""
        events: list[tuple[float, Callable[[], None]]] = []
        for fault in self.config.faults:
            began: list[int] = []
            events.append((fault.at_s, partial(self._begin, fault, began)))
            events.append((fault.at_s + fault.lasts_s, partial(self._end, fault, began)))
        return events

    def _begin(self, fault: PlannedFault, began: list[int]) -> None:
        began.append(now_ms())
        match fault.kind:
            case FaultKind.KILL:
                self.system.workers[fault.victim].signal(signal.SIGKILL)
            case FaultKind.STOP:
                self.system.workers[fault.victim].signal(signal.SIGTERM)
            case FaultKind.FREEZE:
                self.system.workers[fault.victim].signal(signal.SIGSTOP)
            case FaultKind.BROKER_KILL:
                self.cluster.brokers[fault.victim].kill()
            case FaultKind.BROKER_STOP:
                self.cluster.brokers[fault.victim].stop()

    def _end(self, fault: PlannedFault, began: list[int]) -> None:
        if fault.kind is FaultKind.FREEZE:
            self.system.workers[fault.victim].signal(signal.SIGCONT)
        if fault.on_broker:
            self.cluster.brokers[fault.victim].start()
        victim = "broker" if fault.on_broker else "scheduler"
        self.faults.append(Fault(fault.kind, f"{victim}-{fault.victim}", began[0], now_ms()))


def run(config: Config, folder: Path) -> reports.Report:
    """Play the whole piece in ``folder`` and judge it.

    Raises:
        NeverReady: the system never came up.
    """
    cluster = create(folder / "kafka", jar_cache(ROOT), config.brokers)
    cluster.start()
    try:
        return _play(config, folder, cluster)
    finally:
        cluster.stop()


def _play(config: Config, folder: Path, cluster: Cluster) -> reports.Report:
    bootstrap = cluster.bootstrap
    apply(load_catalog(prefix=PREFIX), KafkaAdmin({"bootstrap.servers": bootstrap}))
    size = config.size if config.scenario is Scenario.CHURN else replace(config.size, executors=0)
    target = FlakyTarget()
    system = System.start(bootstrap, PREFIX, folder, size)
    stage = Stage(config, cluster, system, target)
    try:
        calm_ms = system.warm_up()
        stopped_ms = stage.strike()
        stage.settle(stopped_ms)
    finally:
        lateness = system.close()
        target.close()
    return _judge(stage, stopped_ms, reports.calm(lateness, stage.faults, calm_ms))


def _judge(stage: Stage, settled_ms: int, lateness_ms: Sequence[int]) -> reports.Report:
    system = stage.system
    records = read_topics(stage.cluster.bootstrap, PREFIX, time.monotonic)
    history = history_of(records, settled_ms, stage.faults, executors=bool(system.executors))
    exits: Counter[str] = Counter()
    for child in system.children:
        exits.update({f"{child.name}:{code}": count for code, count in child.exits.items()})
    return reports.Report(
        history=history,
        violations=check(history),
        broken=broken(system.children),
        take_overs=reports.take_overs(history, load_catalog().partitions("jobs")),
        lateness_ms=lateness_ms,
        exits=exits,
    )
