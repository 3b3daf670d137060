"""A Kafka cluster of one broker or three, from Kafka's own jars.

Each node is broker and controller. With three, every topic is kept three times and a write is
acknowledged by two (`min.insync.replicas` 2), so any one broker may be lost.
"""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devkafka.broker import READY_S, Broker, Launch
from devkafka.jars import KafkaUnavailable, fetch, java

CLUSTER_ID = "RHVld2hlZWxEZXZLYWZrYQ"
"""A fixed id in Kafka's form (base64 of 16 bytes): data folders outlive the process."""

_STATE = "cluster.json"
_PORT_MIN = 15_000
_PORT_MAX = 32_000
_PORTS_A_PROCESS = 16
"""Processes that start clusters at the same time begin their search this far apart."""


@dataclass(slots=True)
class Cluster:
    """Brokers that belong together.

    Attributes:
        folder: holds a folder for each broker and the ports they keep.
        brokers: the nodes, by id from 1.
    """

    folder: Path
    brokers: list[Broker] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        """What clients are given as ``bootstrap.servers``."""
        return ",".join(broker.address for broker in self.brokers)

    def start(self, deadline_s: float = READY_S) -> None:
        """Start every broker that does not run, and wait until all serve.

        Raises:
            KafkaUnavailable: one did not come up; all are stopped again.
        """
        try:
            starting = [broker for broker in self.brokers if not broker.alive]
            for broker in starting:
                broker.start()
            for broker in starting:
                broker.wait_ready(deadline_s)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End every broker in good order: all are asked first, then waited for."""
        for broker in self.brokers:
            broker.thaw()
            broker.terminate()
        for broker in self.brokers:
            broker.stop()

    def kill(self) -> None:
        """Kill every broker that still runs."""
        for broker in self.brokers:
            broker.kill()


def create(
    folder: Path,
    cache: Path,
    brokers: int = 1,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
    heap_mb: int = 512,
) -> Cluster:
    """Return a formatted cluster in ``folder``, not yet started.

    Args:
        folder: where data, logs and chosen ports are kept; used again if it exists.
        cache: where Kafka's jars are kept.
        brokers: 1 or 3.
        port: client port of the first broker, where it is free; ``None`` for any.
        settings: broker settings that go over the ones chosen here.
        heap_mb: largest Java heap of each broker, in megabytes.

    Raises:
        KafkaUnavailable: Java or Maven is missing, or storage cannot be formatted.
    """
    path = java()
    if path is None:
        raise KafkaUnavailable("Java 17 or newer is needed to run Kafka from its jars")
    launch = Launch(java=path, jars=fetch(cache).resolve(), heap_mb=heap_mb)
    folder = folder.resolve()
    ports = _ports(folder, brokers, port)
    cluster = Cluster(folder)
    for node_id, (client, _) in enumerate(ports, start=1):
        broker = Broker(node_id, client, folder / f"broker-{node_id}", launch)
        properties = broker_properties(node_id, ports, broker.folder / "data")
        broker.format({**properties, **(settings or {})}, CLUSTER_ID)
        cluster.brokers.append(broker)
    return cluster


def broker_properties(node_id: int, ports: list[tuple[int, int]], data: Path) -> dict[str, str]:
    """Return the settings of one node; ``ports`` are (client, controller) by node from 1."""
    client, controller = ports[node_id - 1]
    copies = str(min(3, len(ports)))
    in_sync = str(min(2, len(ports)))
    voters = ",".join(f"{n}@127.0.0.1:{c}" for n, (_, c) in enumerate(ports, start=1))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        # 50 partitions each by default: only files to open for a cluster this small.
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.num.partitions": "8",
        # 3 s by default, waited at the first join of every group.
        "group.initial.rebalance.delay.ms": "0",
        # A dead producer's transaction is looked for every 10 s by default; tests wait for it.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # Topics come from topics.yaml; a misspelt name must fail, not appear.
        "auto.create.topics.enable": "false",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def _ports(folder: Path, brokers: int, wanted: int | None) -> list[tuple[int, int]]:
    state = folder / _STATE
    if state.is_file():
        kept = [(int(a), int(b)) for a, b in json.loads(state.read_text())["ports"]]
        if len(kept) != brokers:
            raise KafkaUnavailable(f"{folder} holds {len(kept)} brokers, not {brokers}; remove it")
        if all(is_free(number) for pair in kept for number in pair):
            return kept
    free = free_ports(2 * brokers)
    if wanted is not None and is_free(wanted):
        free[0] = wanted
    ports = list(zip(free[:brokers], free[brokers:], strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    state.write_text(json.dumps({"ports": ports}))
    return ports


def free_ports(count: int) -> list[int]:
    """Return ``count`` distinct ports nobody listens on at this moment.

    They lie below the range that systems hand out to outgoing connections: a broker that is down
    for a while must find its port free when it comes back.
    """
    first = _PORT_MIN + (os.getpid() * _PORTS_A_PROCESS) % (_PORT_MAX - _PORT_MIN)
    found: list[int] = []
    for step in range(_PORT_MAX - _PORT_MIN):
        port = _PORT_MIN + (first - _PORT_MIN + step) % (_PORT_MAX - _PORT_MIN)
        if is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise KafkaUnavailable(f"no {count} free ports between {_PORT_MIN} and {_PORT_MAX}")


def is_free(port: int) -> bool:
    """Whether nobody listens on ``port`` of this machine at this moment."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
