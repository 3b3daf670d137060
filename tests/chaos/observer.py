"""A reader beside the system: how far it is, and how late runs reach someone who only polls."""

import json
import time
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from scheduler.core.instant import parse_instant
from tests.checker.history import RunKey

_FINAL = frozenset({"succeeded", "dead", "cancelled", "skipped", "missed", "dispatched"})


@dataclass(slots=True)
class Progress:
    """What has been seen so far.

    Attributes:
        latest_ms: newest nominal instant dispatched of each job.
        lateness: (arrival, arrival minus effective instant) of scheduled runs, milliseconds.
    """

    latest_ms: dict[str, int] = field(default_factory=dict)
    lateness: list[tuple[int, int]] = field(default_factory=list)
    _sent: set[RunKey] = field(default_factory=set)
    _finished: set[RunKey] = field(default_factory=set)

    def run(self, value: Any, arrived_ms: int) -> None:
        if value.get("kind") != "run":
            return
        key = _key(value)
        self._sent.add(key)
        self.latest_ms[key[0]] = max(self.latest_ms.get(key[0], 0), key[1])
        if value["trigger"] == "schedule" and value["attempt"] == 1:
            self.lateness.append((arrived_ms, arrived_ms - parse_instant(value["run_at"])))

    def outcome(self, value: Any) -> None:
        if value["status"] in _FINAL:
            self._finished.add(_key(value))
        else:
            self._finished.discard(_key(value))

    def behind(self, job_ids: list[str], instant_ms: int) -> list[str]:
        """The jobs of which no run at or after ``instant_ms`` has been seen."""
        return [job_id for job_id in job_ids if self.latest_ms.get(job_id, 0) < instant_ms]

    def open_runs(self) -> set[RunKey]:
        """Dispatched runs whose newest history is not final."""
        return self._sent - self._finished


class Observer:
    """Follows ``runs`` and ``run-history`` in a thread, read_committed, one record at a time."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._runs, self._history = f"{prefix}runs", f"{prefix}run-history"
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 2,  # brokers go away here on purpose
                "group.id": f"{prefix}observer",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
            }
        )
        topics = self._consumer.list_topics(timeout=10).topics
        self._consumer.assign(
            [
                TopicPartition(topic, partition, 0)
                for topic in (self._runs, self._history)
                for partition in topics[topic].partitions
            ]
        )
        self._progress = Progress()
        self._lock = Lock()
        self._stop = Event()
        self._thread = Thread(target=self._follow, name="observer", daemon=True)
        self._thread.start()

    def behind(self, job_ids: list[str], instant_ms: int) -> list[str]:
        with self._lock:
            return self._progress.behind(job_ids, instant_ms)

    def open_runs(self) -> set[RunKey]:
        with self._lock:
            return self._progress.open_runs()

    def close(self) -> list[tuple[int, int]]:
        """Stop, and hand back the lateness of everything seen."""
        self._stop.set()
        self._thread.join(10)
        self._consumer.close()
        return self._progress.lateness

    def _follow(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            value = json.loads(message.value() or b"null")
            with self._lock:
                if message.topic() == self._runs:
                    self._progress.run(value, time.time_ns() // 1_000_000)
                else:
                    self._progress.outcome(value)


def _key(value: Any) -> RunKey:
    return (value["job_id"], parse_instant(value["scheduled_at"]), value.get("command_id"))
