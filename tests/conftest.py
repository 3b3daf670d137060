"""Fixtures for every test: a real Kafka for the session, a fresh topic prefix for each test."""

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs

from devkafka.cluster import create, free_ports
from devkafka.docker import IMAGE, environment
from devkafka.jars import KafkaUnavailable
from devkafka.provide import Provided, choose, data_folder, jar_cache
from scheduler.contract.topics import TopicCatalog, load_catalog
from scheduler.kafka.admin import KafkaAdmin, apply

ROOT = Path(__file__).resolve().parents[1]

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Kafka:
    """A real Kafka for tests.

    Attributes:
        bootstrap: what clients are given as ``bootstrap.servers``.
        prefix: put before every topic, group and transactional id; fresh for this test run.
    """

    bootstrap: str
    prefix: str

    def fresh_prefix(self) -> str:
        """Return a prefix no other test of this run has."""
        return f"{self.prefix}{next(_numbers)}."

    def topics(
        self, prefix: str | None = None, partitions: Mapping[str, int] | None = None
    ) -> TopicCatalog:
        """Create the topics of topics.yaml and return their catalog.

        Args:
            prefix: put before each name; the session's own when ``None``.
            partitions: fewer partitions for some topics, for a test that needs no more.
        """
        catalog = load_catalog(prefix=self.prefix if prefix is None else prefix)
        catalog = catalog.with_partitions(partitions or {})
        apply(catalog, KafkaAdmin({"bootstrap.servers": self.bootstrap}))
        return catalog


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A real Kafka: the configured one, else one in Docker, else one from Kafka's jars."""
    run = f"{os.getpid()}-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    try:
        provided = _provide(f"test-{run}")
    except KafkaUnavailable as error:
        pytest.exit(str(error), returncode=1)  # once, instead of at every test that needs it
    yield Kafka(provided.bootstrap, f"test-{run}.")
    provided.stop()
    if not request.session.testsfailed:
        shutil.rmtree(data_folder(ROOT, f"test-{run}"), ignore_errors=True)


@pytest.fixture
def prefix(kafka: Kafka) -> str:
    """A topic prefix no other test has."""
    return kafka.fresh_prefix()


def _provide(name: str) -> Provided:
    origin = choose()
    if origin == "configured":
        return Provided(os.environ["KAFKA_BOOTSTRAP_SERVERS"], origin, lambda: None)
    if origin == "docker":
        return _testcontainer()
    cluster = create(data_folder(ROOT, name), jar_cache(ROOT))
    cluster.start()
    return Provided(cluster.bootstrap, origin, cluster.stop)


def _testcontainer() -> Provided:
    port = free_ports(1)[0]
    container = DockerContainer(IMAGE).with_bind_ports(9092, port)
    for setting, value in environment(port).items():
        container = container.with_env(setting, value)
    container.start()
    wait_for_logs(container, "Kafka Server started", timeout=120)
    return Provided(f"127.0.0.1:{port}", "docker", container.stop)
