"""The bare loop: what one transactional producer commits when there is nothing to decide.

It is the reference of the scheduler's own figures: the same producer settings, the same bytes,
transactions of the same size, one offset commit in each, no wheel and no bookkeeping.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Event

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog, load_catalog
from scheduler.core.command import run_command
from scheduler.settings import SchedulerSettings
from tests.performance.figure import Figure
from tests.performance.lateness import LatenessReader, lateness_figures
from tests.performance.settings import producer_settings
from tests.performance.site import Site

RUNS = 200_000
RUNS_A_TRANSACTION = SchedulerSettings().transaction_runs_max
BODY = (
    b'"kind":"run","job_id":"%s","definition_offset":1234,"owner":"default","type":null,'
    b'"queue":"default","target":{"kind":"none"},"payload":null,"max_attempts":5,'
    b'"timeout_seconds":60,"retry_base_seconds":10,"retry_cap_seconds":3600,'
    b'"concurrency":"allow","max_open_runs":100,"expect_success_within_seconds":null,'
    b'"run_id":"%s@'
)
"""Body of a run command as the scheduler stores it, for a job without a payload."""

RUNS_A_SECOND = 2_800
PERIOD_MS = 20
LATENESS_S = 20.0
_WARM_S = 60.0
"""For the process to start and the broker to have seen every partition."""

Run = tuple[int, bytes, bytes]
"""Partition, key and value of one run command."""


def run(site: Site) -> list[Figure]:
    """Committed runs/s of the bare loop."""
    catalog = site.topics()
    runs = example_runs(site.count(RUNS), catalog.partitions("runs"))
    return [rate_figure(site, catalog, runs)]


def run_lateness(site: Site) -> list[Figure]:
    """Lateness of the bare loop at a steady rate, a transaction each `PERIOD_MS`."""
    catalog = site.topics()
    for_s = max(3.0, LATENESS_S * site.scale)
    plan = _Plan(site.bootstrap(), catalog.prefix, for_s)
    reader = LatenessReader(plan.bootstrap, catalog.name("runs"), catalog.partitions("runs"))
    context = multiprocessing.get_context("spawn")
    warm = context.Event()
    process = context.Process(target=_commit_steadily, args=(plan, warm))
    process.start()
    try:
        if not warm.wait(_WARM_S):
            raise TimeoutError(f"the bare loop was not ready within {_WARM_S:g} s")
        late_ms = reader.lateness_ms(for_s + 2)  # it begins a second later, and may end late
        process.join(30)
    finally:
        process.kill()
        reader.close()
    if process.exitcode != 0:
        raise RuntimeError(f"the bare loop's process ended with {process.exitcode}")
    conditions = f"{RUNS_A_SECOND:,} runs/s, a transaction each {PERIOD_MS} ms, {_where(site)}"
    return list(lateness_figures("bare loop: lateness", late_ms, conditions))


def rate_figure(site: Site, catalog: TopicCatalog, runs: Sequence[Run]) -> Figure:
    """The rate at which the bare loop commits exactly these runs; a reference for a ratio."""
    bare = BareProducer(site.bootstrap(), catalog)
    bare.warm_up()
    began = time.perf_counter()
    for first in range(0, len(runs), RUNS_A_TRANSACTION):
        bare.commit(runs[first : first + RUNS_A_TRANSACTION])
    seconds = time.perf_counter() - began
    bare.close()
    value_bytes = sum(len(value) for _, _, value in runs) // len(runs)
    conditions = (
        f"{len(runs):,} runs of {value_bytes} B, {RUNS_A_TRANSACTION:,} a transaction, "
        f"{catalog.partitions('runs')} partitions, {_where(site)}"
    )
    return Figure("bare loop", len(runs) / seconds, "committed runs/s", conditions)


def example_runs(count: int, partitions: int) -> list[Run]:
    """Run commands of one cohort at one instant, in the order of their partitions."""
    runs = []
    for number in range(count):
        key = b"bench-%07d" % number
        value = run_command(BODY % (key, key), 1_800_000_000_000, 1_800_000_000_000, "schedule", 0)
        runs.append((partition_of(key, partitions), key, value))
    return sorted(runs)


class BareProducer:
    """One transactional producer with the scheduler's settings, and an offset to commit."""

    def __init__(self, bootstrap: str, catalog: TopicCatalog) -> None:
        self._topic = catalog.name("runs")
        self._partitions = catalog.partitions("runs")
        self._offsets = [TopicPartition(catalog.name("jobs"), 0, 1)]
        # Never subscribed: its metadata names the group without any generation to fence.
        self._group = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": f"{catalog.prefix}bench-bare"}
        )
        self._producer = Producer(producer_settings(bootstrap, f"{catalog.prefix}bench-bare"))
        _call(lambda: self._producer.init_transactions(30))

    def commit(self, runs: Sequence[Run]) -> None:
        """Commit the runs in one transaction."""
        self._producer.begin_transaction()
        produce, topic = self._producer.produce, self._topic
        for partition, key, value in runs:
            produce(topic, value, key, partition)
        metadata = self._group.consumer_group_metadata()
        _call(lambda: self._producer.send_offsets_to_transaction(self._offsets, metadata, 30))
        _call(lambda: self._producer.commit_transaction(30))

    def warm_up(self) -> None:
        """Write to every partition a few times.

        The first marker in a new partition takes the broker some 30 ms, once; and a broker
        just started runs uncompiled code.
        """
        value = run_command(BODY % (b"warm-up", b"warm-up"), 0, 0, "schedule", None)
        for _ in range(20):
            self.commit([(number, b"warm-up", value) for number in range(self._partitions)])

    def close(self) -> None:
        """Release the clients."""
        self._group.close()
        self._producer.flush(10)


def _call(call: Callable[[], object]) -> None:
    """Call, and again while the client says that the same call may be repeated."""
    until_s = time.monotonic() + 30
    while True:
        try:
            call()
        except KafkaException as failure:
            if not failure.args[0].retriable() or time.monotonic() > until_s:
                raise
        else:
            return


@dataclass(frozen=True, slots=True)
class _Plan:
    bootstrap: str
    prefix: str
    for_s: float


def _commit_steadily(plan: _Plan, warm: Event) -> None:
    """In a process of its own: each `PERIOD_MS`, commit the runs due then."""
    catalog = load_catalog(prefix=plan.prefix)
    bare = BareProducer(plan.bootstrap, catalog)
    bare.warm_up()
    warm.set()
    keys = [b"bench-%07d" % number for number in range(RUNS_A_SECOND)]
    members = [(partition_of(k, catalog.partitions("runs")), k, BODY % (k, k)) for k in keys]
    begin_ms = (int(time.time() * 1_000) // PERIOD_MS + 50) * PERIOD_MS
    end_ms = begin_ms + int(plan.for_s * 1_000)
    while begin_ms < end_ms:
        # Pacing of a load, not synchronisation: the instants to come are the schedule.
        time.sleep(max(0.0, begin_ms / 1_000 - time.time()))
        now_ms = int(time.time() * 1_000)
        # A late loop commits all that is due at once, as the scheduler does.
        due = range(begin_ms, min(now_ms + 1, end_ms), PERIOD_MS)
        bare.commit([command for due_ms in due for command in _due_runs(members, due_ms)])
        begin_ms = due[-1] + PERIOD_MS if due else begin_ms
    bare.close()


def _due_runs(members: list[Run], due_ms: int) -> list[Run]:
    """The equal share of the members whose turn this period of the second is."""
    share = len(members) * PERIOD_MS // 1_000
    first = due_ms % 1_000 // PERIOD_MS * share
    return [
        (partition, key, run_command(body, due_ms, due_ms, "schedule", None))
        for partition, key, body in members[first : first + share]
    ]


def _where(site: Site) -> str:
    return f"{site.kafka_conditions()} beside it"
