"""Composition root of a scheduler worker: the only place that builds real things."""

import gc
import hashlib
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from scheduler.contract.intake import ContractDecoder
from scheduler.contract.topics import TopicCatalog
from scheduler.core.draft import Setting
from scheduler.core.layout import partition_range
from scheduler.core.ports import OrderedStore
from scheduler.core.routes import Routes
from scheduler.core.zone import tzdata_version
from scheduler.errors import (
    ConfigError,
    DuewheelError,
    ExitCode,
    RetryableError,
    exit_code_of,
)
from scheduler.kafka.admin import KafkaAdmin, check
from scheduler.kafka.ownership import Ownership, OwnershipConfig
from scheduler.kafka.positions import Positions, PositionsConfig
from scheduler.kafka.reader import LogReader, ReaderConfig
from scheduler.kafka.transaction import ProducerConfig, TransactionalProducer
from scheduler.logs import configure_logs
from scheduler.runtime import events
from scheduler.runtime.clock import SystemClock
from scheduler.runtime.partition import KINDS
from scheduler.runtime.turn import TurnConfig
from scheduler.runtime.worker import Edges, Worker, WorkerConfig
from scheduler.settings import SchedulerSettings, Warm
from scheduler.store.rocks import open_store

log = structlog.get_logger("scheduler")

CLOSE_S = 5.0
"""Deadline for closing each client."""

CURSOR_FETCH_MS = 20
"""How long a broker holds a fetch of ``cursors``: what a take-over waits for its end at most."""

GC_THRESHOLDS = (50_000, 20, 100)
"""Records and versions come by the million and hold no cycles; the default looks for some after
every 700 allocations, over and over, while a store is rebuilt."""

LAYOUT_VERSION = b"1"
"""Of core/layout.py; a store written with another one is dropped and rebuilt."""

_IDENTITY_KEY = b"s"


def run_scheduler(settings: SchedulerSettings) -> int:
    """Run a worker until SIGTERM or SIGINT.

    Returns:
        An `ExitCode`: 0 after a clean stop. Errors are reported here, once.
    """
    configure_logs()
    gc.set_threshold(*GC_THRESHOLDS)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        _run(settings, stop)
    except ConfigError as error:
        sys.stderr.write(f"duewheel scheduler: {error}\n")
        return exit_code_of(error)
    except DuewheelError as error:
        log.error(events.WORKER_FAILED, error=str(error), kind=type(error).__name__)
        return exit_code_of(error)
    return ExitCode.OK


def _run(settings: SchedulerSettings, stop: threading.Event) -> None:
    catalog = settings.catalog()
    admin = KafkaAdmin(settings.client_options(), settings.replication_factor)
    for difference in check(catalog, admin):
        log.warning(events.TOPIC_DIFFERS, difference=str(difference))
    topic_id = _topic_id(admin, catalog.name("jobs"))
    store, _ = open_store(settings.state_dir / "scheduler")
    if store.moved_aside is not None:
        log.warning(events.STORE_MOVED_ASIDE, path=str(store.moved_aside))
    routes = _routes(catalog)
    _check_identity(store, routes, f"{admin.cluster_id()} {topic_id.hex()}".encode())
    edges = _edges(settings, catalog, store)
    try:
        worker = Worker(_config(settings, routes, topic_id), edges,
                        ContractDecoder(routes.job_partitions, catalog.queues))  # fmt: skip
        worker.start()
        _loop(worker, stop, store, settings.flush_interval_seconds)
    finally:
        _close(edges)
    log.info(events.WORKER_STOPPED)


def _loop(worker: Worker, stop: threading.Event, store: OrderedStore, flush_s: int) -> None:
    with ThreadPoolExecutor(1, "flush") as pool:
        done = threading.Event()
        flushing = pool.submit(_flush_regularly, store, flush_s, done)
        try:
            while not stop.is_set() and not flushing.done():
                worker.step()
        finally:
            done.set()
        flushing.result()


def _flush_regularly(store: OrderedStore, every_s: int, done: threading.Event) -> None:
    """Bound what a crash costs; off the core thread, which must not wait for a disk.

    Raises:
        StoreLostError: the store cannot be made durable; the loop ends with it.
    """
    while not done.wait(every_s):
        store.flush()


def _edges(settings: SchedulerSettings, catalog: TopicCatalog, store: OrderedStore) -> Edges:
    servers, extra = settings.bootstrap_servers, settings.kafka_options
    group, jobs, deadline_s = catalog.scheduler_group(), catalog.name("jobs"), _deadline(settings)
    producer = TransactionalProducer(ProducerConfig(
        servers, catalog.scheduler_transactional_id(settings.instance()),
        transaction_timeout_ms=settings.transaction_timeout_ms,
        call_deadline_s=deadline_s, extra=extra))  # fmt: skip
    if not producer.connect():
        raise RetryableError("no producer could be started; are the brokers reachable?")
    return Edges(
        ownership=Ownership(OwnershipConfig(
            servers, group, jobs, instance_id=settings.group_instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_ms=settings.heartbeat_interval_ms,
            call_deadline_s=deadline_s, extra=extra)),
        cursor_reader=LogReader(ReaderConfig(
            servers, group, fetch_wait_ms=CURSOR_FETCH_MS, queued_kbytes=4_096,
            call_deadline_s=deadline_s, extra=extra)),
        reader=LogReader(ReaderConfig(servers, group, call_deadline_s=deadline_s, extra=extra)),
        producer=producer,
        positions=Positions(PositionsConfig(
            servers, group, jobs, ends=partial(_ends, _routes(catalog)), extra=extra)),
        store=store,
        clock=SystemClock(),
    )  # fmt: skip


def _deadline(settings: SchedulerSettings) -> float:
    return float(settings.call_deadline_seconds)


def _ends(routes: Routes, partition: int) -> tuple[tuple[str, int], ...]:
    """The logs that a taker of a partition must have read to their ends."""
    return ((routes.cursors, partition % routes.cursor_partitions), (routes.retries, partition))


def _config(settings: SchedulerSettings, routes: Routes, topic_id: bytes) -> WorkerConfig:
    return WorkerConfig(
        setting=Setting(routes=routes, catch_up_ms=1_000 * settings.catchup_grace_seconds),
        turn=TurnConfig(
            interval_ms=settings.transaction_interval_ms,
            runs_most=settings.transaction_runs_max,
            backup_ms=1_000 * settings.cursor_backup_seconds,
            jobs_topic=routes.jobs,
        ),
        lost_cursor_limit_ms=1_000 * settings.catchup_limit_seconds,
        warm_all=settings.warm is Warm.ALL,
        topic_id=topic_id,
        tzdata=tzdata_version(),
        allow_older_tzdata=settings.allow_older_tzdata,
    )


def _routes(catalog: TopicCatalog) -> Routes:
    return Routes(
        prefix=catalog.prefix,
        job_partitions=catalog.partitions("jobs"),
        run_partitions=catalog.partitions("runs"),
        cursor_partitions=catalog.partitions("cursors"),
    )


def _topic_id(admin: KafkaAdmin, topic: str) -> bytes:
    identity = admin.topic_identities([topic])[topic]
    return hashlib.sha256(identity.topic_id.encode()).digest()[:16]


def _check_identity(store: OrderedStore, routes: Routes, cluster: bytes) -> None:
    """Drop a store of another cluster, another ``jobs`` topic, another layout."""
    identity = b" ".join((LAYOUT_VERSION, cluster, str(routes.job_partitions).encode()))
    if store.get(_IDENTITY_KEY) == identity:
        return
    for kind in KINDS:
        lower, _ = partition_range(kind, 0)
        store.drop_range(lower, kind + b"\xff" * 3)
    store.write([(_IDENTITY_KEY, identity)])


def _close(edges: Edges) -> None:
    """Leave the group first, so that others take over at once."""
    edges.ownership.close(CLOSE_S)
    edges.producer.close(CLOSE_S)
    edges.reader.close(CLOSE_S)
    edges.cursor_reader.close(CLOSE_S)
    edges.positions.close(CLOSE_S)
    edges.store.close()
