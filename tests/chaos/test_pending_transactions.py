"""Whose unfinished transaction delays what: a user's nothing of others, a dead owner's a little."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog
from tests.chaos.load import steady_ids
from tests.chaos.processes import ROOT, broken
from tests.chaos.system import Size, System, now_ms
from tests.checker.read import history_of, read_topics
from tests.checker.rules import check
from tests.conftest import Kafka

SESSION_MS = 10_000
TAKE_OVER_MS = SESSION_MS + 5_000
"""The session, the rebalance, and slack for a machine that also runs the rest of the tests."""
DEFINITION = b'{"every": "PT1S"}'

pytestmark = pytest.mark.integration


@pytest.fixture
def catalog(kafka: Kafka, prefix: str) -> TopicCatalog:
    return kafka.topics(prefix)


@pytest.fixture
def system(kafka: Kafka, catalog: TopicCatalog, tmp_path: Path) -> Iterator[System]:
    size = Size(workers=2, executors=0, steady=300)
    system = System.start(kafka.bootstrap, catalog.prefix, tmp_path, size)
    try:
        system.warm_up()
        yield system
    finally:
        system.close()
    assert broken(system.children) == []


def test_a_users_open_transaction_delays_only_the_definitions_behind_it(
    kafka: Kafka, catalog: TopicCatalog, system: System
) -> None:
    user = _open_on_every_partition(kafka.bootstrap, catalog)
    for partition in range(catalog.partitions("jobs")):
        system.user.define(f"behind-{partition:03}", {"every": "PT1S"})
    assert system.user.flush() == 0

    assert system.until(partial(system.reached, now_ms() + 3_000), 30.0), "fires wait for a user"
    died_ms = now_ms()
    system.workers[0].signal(signal.SIGKILL)
    assert system.until(partial(system.reached, died_ms + 1), TAKE_OVER_MS / 1000), (
        "take-over waits"
    )
    print(f"take-over behind a user's open transaction: {now_ms() - died_ms} ms")
    behind = [f"behind-{partition:03}" for partition in range(catalog.partitions("jobs"))]
    assert system.observer.behind(behind, 1) == behind, "read beyond an open transaction"

    user.commit_transaction(30)
    freed = [*behind, *_held_ids(catalog)]
    assert system.until(lambda: not system.observer.behind(freed, died_ms), 30.0)
    settled_ms = now_ms() - 2_000
    assert system.until(partial(system.reached, settled_ms), 10.0)
    records = read_topics(kafka.bootstrap, catalog.prefix, time.monotonic)
    assert [str(v) for v in check(history_of(records, settled_ms))] == []


def test_a_dead_owners_pending_transaction_delays_a_take_over_by_little(
    kafka: Kafka, catalog: TopicCatalog, system: System
) -> None:
    idle_ms = _outlive_a_ghost(kafka.bootstrap, catalog, system, "--idle")
    pending_ms = _outlive_a_ghost(kafka.bootstrap, catalog, system)
    print(f"take-over from a dead owner: {idle_ms} ms; with a pending transaction: {pending_ms} ms")
    assert pending_ms < TAKE_OVER_MS
    settled_ms = now_ms()
    assert system.until(partial(system.reached, settled_ms), 10.0)
    records = read_topics(kafka.bootstrap, catalog.prefix, time.monotonic)
    assert [str(v) for v in check(history_of(records, settled_ms))] == []


def _held_ids(catalog: TopicCatalog) -> list[str]:
    """One job id for each partition of ``jobs``, found by trying."""
    count = catalog.partitions("jobs")
    found: dict[int, str] = {}
    number = 0
    while len(found) < count:
        job_id = f"held-{number}"
        found.setdefault(partition_of(job_id.encode(), count), job_id)
        number += 1
    return sorted(found.values())


def _open_on_every_partition(bootstrap: str, catalog: TopicCatalog) -> Producer:
    user = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"{catalog.prefix}slow-user",
            "transaction.timeout.ms": 120_000,
        }
    )
    user.init_transactions(30)
    user.begin_transaction()
    for job_id in _held_ids(catalog):
        key = job_id.encode()
        partition = partition_of(key, catalog.partitions("jobs"))
        user.produce(catalog.name("jobs"), DEFINITION, key, partition=partition)
    assert user.flush(30) == 0
    return user


def _outlive_a_ghost(bootstrap: str, catalog: TopicCatalog, system: System, *extra: str) -> int:
    """Milliseconds from the death of a group member to runs in all partitions it had."""
    ghost = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.ghost", bootstrap, catalog.prefix, *extra],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert ghost.stdout is not None
    try:
        owned = {int(partition) for partition in ghost.stdout.readline().split()}
        assert ghost.stdout.readline() == "pending\n"
    finally:
        ghost.kill()
        ghost.wait()
    died_ms = now_ms()
    count = catalog.partitions("jobs")
    orphans = [
        j for j in steady_ids(system.size.steady) if partition_of(j.encode(), count) in owned
    ]
    assert orphans, "the ghost was given no partition with jobs"
    taken = system.until(lambda: not system.observer.behind(orphans, died_ms), 60.0)
    assert taken, "partitions of a dead member were never taken over"
    return now_ms() - died_ms
