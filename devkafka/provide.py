"""Whichever Kafka is at hand, in this order: configured, Docker, Kafka's own jars.

The choice is made once and said aloud; it is real Apache Kafka every time.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devkafka import running
from devkafka.cluster import create, free_ports, is_free
from devkafka.docker import COMPOSE, PORT_VARIABLE, docker_answers
from devkafka.jars import KafkaUnavailable, java

PORT = 9092
"""Kafka's customary port; taken by the development broker when it is free."""

NOTHING_AT_HAND = (
    "No Kafka at hand. Do one of these: set KAFKA_BOOTSTRAP_SERVERS to a running cluster; "
    "start Docker; or install Java 17 or newer and Maven "
    "(Debian: apt install openjdk-17-jre-headless maven)."
)


@dataclass(frozen=True, slots=True)
class Provided:
    """A Kafka to use.

    Attributes:
        bootstrap: what clients are given as ``bootstrap.servers``.
        origin: where it came from, for people: ``configured``, ``docker`` or ``jars``.
        stop: ends it, unless it was there before.
    """

    bootstrap: str
    origin: str
    stop: Callable[[], None]


def choose(environment: Mapping[str, str] = os.environ) -> str:
    """Return ``configured``, ``docker`` or ``jars``: the first that is possible here.

    Raises:
        KafkaUnavailable: none is; the message says what to do.
    """
    if environment.get("KAFKA_BOOTSTRAP_SERVERS"):
        return "configured"
    if docker_answers():
        return "docker"
    if java() is not None and shutil.which("mvn") is not None:
        return "jars"
    raise KafkaUnavailable(NOTHING_AT_HAND)


def provide(root: Path, name: str = "dev") -> Provided:
    """Return a Kafka for development, starting one below ``root`` if none is configured.

    Args:
        root: the project's folder; data goes to ``.duewheel/kafka/<name>``, jars to ``.cache``.
        name: tells several apart.

    Raises:
        KafkaUnavailable: there is none, or it does not start.
    """
    origin = choose()
    if origin == "configured":
        return Provided(os.environ["KAFKA_BOOTSTRAP_SERVERS"], origin, _leave_alone)
    if origin == "docker":
        return _compose()
    already = running.bootstrap(data_folder(root, name))
    if already is not None:
        return Provided(already, origin, _leave_alone)
    cluster = create(data_folder(root, name), jar_cache(root), port=PORT)
    cluster.start()
    return Provided(cluster.bootstrap, origin, cluster.stop)


def data_folder(root: Path, name: str) -> Path:
    """Return where the cluster called ``name`` keeps its data."""
    return root / ".duewheel" / "kafka" / name


def jar_cache(root: Path) -> Path:
    """Return where Kafka's jars are kept."""
    return root / ".cache" / "kafka"


def stop_docker() -> int:
    """End the development cluster in Docker; return how many brokers ran."""
    if not docker_answers():
        return 0
    ran = _compose_port() is not None
    _docker_compose(PORT, "down")
    return int(ran)


def _compose() -> Provided:
    already = _compose_port()
    if already is not None:
        return Provided(f"127.0.0.1:{already}", "docker", _leave_alone)
    port = PORT if is_free(PORT) else free_ports(1)[0]
    _docker_compose(port, "up", "--detach", "--wait")

    def stop() -> None:
        _docker_compose(port, "down")

    return Provided(f"127.0.0.1:{port}", "docker", stop)


def _compose_port() -> int | None:
    """The port of the cluster that already runs in Docker, or ``None``."""
    try:
        answer = _docker_compose(PORT, "port", "kafka", str(PORT))
    except KafkaUnavailable:
        return None
    number = answer.strip().rpartition(":")[2]
    return int(number) if number.isdigit() and int(number) else None


def _docker_compose(port: int, *arguments: str) -> str:
    command = ["docker", "compose", "--file", str(COMPOSE), *arguments]
    environment = {**os.environ, PORT_VARIABLE: str(port)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KafkaUnavailable(f"docker compose {arguments[0]} failed:\n{done.stderr}")
    return done.stdout


def _leave_alone() -> None:
    """Do nothing: a configured cluster is not ours to stop."""
