"""The executor's end of the line for tests: run commands in, everything it writes out."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog, load_catalog
from scheduler.core.instant import format_instant
from scheduler.kafka.admin import KafkaAdmin, apply

DEADLINE_S = 60.0
ROOT = Path(__file__).resolve().parents[3]
SMALL = {"jobs": 4, "job-commands": 4, "runs-retry": 4}
OTHERS = 2

Row = dict[str, Any]


@dataclass(slots=True)
class Line:
    """Topics of one prefix, a producer of run commands, a reader of what executors write."""

    bootstrap: str
    catalog: TopicCatalog
    folder: Path
    topics_file: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _seen: dict[str, list[Row]] = field(default_factory=dict)
    _readers: dict[str, Consumer] = field(default_factory=dict)

    # ---- in ----------------------------------------------------------------------------------

    def send(self, *commands: Mapping[str, Any]) -> None:
        """Put run commands into ``runs``, as the scheduler would."""
        topic, count = self.catalog.name("runs"), self.catalog.partitions("runs")
        self.produce(topic, count, commands)

    def produce(self, topic: str, count: int, values: tuple[Mapping[str, Any], ...]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            key = str(value["job_id"]).encode()
            producer.produce(topic, json.dumps(value), key, partition_of(key, count))
        assert producer.flush(DEADLINE_S) == 0

    def create_topic(self, name: str, partitions: int = 3) -> str:
        full = f"{self.catalog.prefix}target-{name}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(full, partitions, 1)])[full].result(DEADLINE_S)
        return full

    # ---- executors ---------------------------------------------------------------------------

    def start(self, instance: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start an executor process."""
        environment = os.environ | {
            "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap,
            "DUEWHEEL_TOPIC_PREFIX": self.catalog.prefix,
            "DUEWHEEL_TOPICS_FILE": str(self.topics_file),
            "DUEWHEEL_STATE_DIR": str(self.folder / instance),
            "DUEWHEEL_INSTANCE_ID": instance,
            "DUEWHEEL_SESSION_TIMEOUT_MS": "6000",
            "PYTHONPATH": str(ROOT),
        }
        environment |= {f"DUEWHEEL_{name.upper()}": value for name, value in settings.items()}
        out = (self.folder / f"{instance}.log").open("ab")
        command = [sys.executable, "-m", "duewheel", "executor"]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=ROOT)
        self.processes.append(process)
        return process

    def log(self, instance: str) -> str:
        """What an executor has logged so far."""
        return (self.folder / f"{instance}.log").read_text()

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE_S)
        for reader in self._readers.values():
            reader.close()

    # ---- out ---------------------------------------------------------------------------------

    def read(self, topic: str) -> list[Row]:
        """Everything committed in ``topic`` so far: key, value (decoded JSON), headers."""
        reader = self._readers.get(topic) or self._reader(topic)
        seen = self._seen.setdefault(topic, [])
        while message := reader.poll(0.2):
            if message.error() is None:
                value = message.value()
                seen.append({
                    "key": (message.key() or b"").decode(),
                    "value": None if value is None else json.loads(value),
                    "partition": message.partition(),
                    "headers": dict(message.headers() or []),
                })  # fmt: skip
        return seen

    def values(self, base: str) -> list[Row]:
        return [row["value"] for row in self.read(self.catalog.name(base))]

    def history(self, run_id: str) -> list[str]:
        """Statuses of a run, in the order in which they were written."""
        rows = self.values("run-history")
        return [row["status"] for row in rows if row["run_id"] == run_id]

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds; each check reads the topics it looks at."""
        until, pause = time.monotonic() + DEADLINE_S, threading.Event()
        while not condition():
            assert time.monotonic() < until, f"{what}: not within {DEADLINE_S:g} s"
            pause.wait(0.02)

    def wait_for_status(self, run_id: str, status: str) -> None:
        self.wait_for(f"{run_id} {status}", lambda: status in self.history(run_id))

    def _reader(self, topic: str) -> Consumer:
        reader = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "reader",
            "isolation.level": "read_committed", "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        })  # fmt: skip
        found = reader.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        reader.assign([TopicPartition(topic, number, 0) for number in found])
        self._readers[topic] = reader
        return reader


def small_topics(folder: Path) -> Path:
    """The project's topics.yaml with few partitions: a test needs no more."""
    document = yaml.safe_load((ROOT / "topics.yaml").read_text())
    for entry in document["topics"]:
        if entry["partitions"] > 1:
            entry["partitions"] = SMALL.get(entry["name"], OTHERS)
    path = folder / "topics.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def make_line(bootstrap: str, prefix: str, folder: Path) -> Line:
    path = small_topics(folder)
    catalog = load_catalog(prefix, path)
    apply(catalog, KafkaAdmin({"bootstrap.servers": bootstrap}))
    return Line(bootstrap, catalog, folder, path)


def run(job_id: str, at_ms: int, target: Mapping[str, Any], **more: Any) -> Row:
    """A run command as the scheduler sends it."""
    scheduled_at = format_instant(at_ms)
    return {
        "kind": "run", "job_id": job_id, "scheduled_at": scheduled_at, "run_at": scheduled_at,
        "attempt": 1, "deferral": 0, "trigger": "schedule", "command_id": None,
        "run_id": f"{job_id}@{scheduled_at}", "definition_offset": 1,
        "settled_below": scheduled_at, "owner": "default", "type": None, "queue": "default",
        "target": target, "payload": {"n": at_ms}, "max_attempts": 5, "timeout_seconds": 60,
        "retry_base_seconds": 10, "retry_cap_seconds": 3600, "concurrency": "allow",
        "max_open_runs": 100, "expect_success_within_seconds": None,
    } | more  # fmt: skip


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process as a crash would."""
    process.send_signal(signal.SIGKILL)
    process.wait(DEADLINE_S)
