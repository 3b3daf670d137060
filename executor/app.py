"""Composition root of an executor: the only place that builds real things."""

import random
import signal
import threading
from dataclasses import dataclass

import structlog

from executor import events
from executor.core.routes import ExecutorRoutes
from executor.runtime.attempts import Attempts
from executor.runtime.worker import Edges, Worker, WorkerConfig
from executor.settings import ExecutorSettings
from executor.targets.directory import Directory
from executor.targets.http import HttpTarget
from executor.targets.kafka import KafkaTarget
from executor.targets.order import Target
from executor.targets.python import PythonTarget, load_handlers
from executor.targets.topics import Lookup, TopicCounts
from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog
from scheduler.core.ports import Clock
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
from scheduler.kafka.watchdog import WATCHDOG
from scheduler.logs import configure_logs
from scheduler.runtime.clock import SystemClock

log = structlog.get_logger("executor")

WAIT_S = 0.02
"""Of an idle step: what an ended attempt waits for its transaction at most."""

BACKOFF_S = 0.5
"""After a step that failed for a reason that passes."""

CLOSE_S = 5.0
"""For each client at the end."""

LOOKUP_DEADLINE_S = 60.0
"""Of a question for a topic; above the client's own time-outs."""


@dataclass(frozen=True, slots=True)
class Signals:
    """When to stop. Set by SIGTERM and SIGINT, or by whoever runs an executor in a thread."""

    stop: threading.Event

    def install(self) -> None:
        """Let SIGTERM and SIGINT set ``stop``; main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop.set())


def run_executor(settings: ExecutorSettings) -> int:
    """Run an executor until SIGTERM or SIGINT. Returns its exit code."""
    configure_logs()
    signals = Signals(threading.Event())
    signals.install()
    try:
        serve(settings, signals.stop)
    except DuewheelError as error:
        code = exit_code_of(error)
        log.error(events.EXECUTOR_FAILED, error=str(error), exit_code=int(code))
        return code
    return ExitCode.OK


def serve(settings: ExecutorSettings, stop: threading.Event) -> None:
    """Run an executor until ``stop`` is set, then finish what is under way.

    Raises:
        ConfigError: a setting or a topic is not as it must be.
        DuewheelError: the process is to end; see `exit_code_of`.
    """
    catalog = settings.catalog()
    clock = SystemClock()
    routes = _checked_routes(settings, catalog)
    handlers = load_handlers(settings.handler_modules())
    targets: dict[str, Target] = {
        "http": HttpTarget(settings.http_connections_max),
        "python": PythonTarget(handlers, settings.handler_threads_max),
    }
    worker = Worker(_worker_config(settings, routes),
                    _edges(settings, catalog, routes, targets, clock),
                    random.Random())  # fmt: skip
    log.info(events.EXECUTOR_STARTED, instance=settings.instance(), queue=settings.queue,
             handlers=sorted(handlers), max_in_flight=settings.max_in_flight)  # fmt: skip
    try:
        _loop(worker, clock, stop)
        _drain(worker, clock, settings.drain_seconds)
    finally:
        unfinished = worker.close(CLOSE_S)
    log.info(events.EXECUTOR_STOPPED, instance=settings.instance(), unfinished=unfinished)


def _loop(worker: Worker, clock: Clock, stop: threading.Event) -> None:
    while not stop.is_set():
        _step(worker, clock, stop)


def _step(worker: Worker, clock: Clock, stop: threading.Event) -> None:
    try:
        worker.wait(WAIT_S)
        worker.step(clock.now_ms(), clock.monotonic_ms())
    except RetryableError as error:
        log.warning(events.STEP_RETRIED, error=str(error))
        stop.wait(BACKOFF_S)


def _drain(worker: Worker, clock: Clock, limit_s: float) -> None:
    """Claim nothing more; record what ends within the limit."""
    worker.drain()
    log.info(events.EXECUTOR_DRAINING, in_flight=worker.in_flight, limit_s=limit_s)
    until_ms = clock.monotonic_ms() + int(limit_s * 1000)
    never = threading.Event()
    while worker.busy and clock.monotonic_ms() < until_ms:
        _step(worker, clock, never)


def _checked_routes(settings: ExecutorSettings, catalog: TopicCatalog) -> ExecutorRoutes:
    admin = KafkaAdmin(settings.client_options())
    for difference in check(catalog, admin):
        log.warning(events.TOPIC_DIFFERS, difference=str(difference))
    queue = settings.queue
    runs, state = catalog.spec("runs", queue), catalog.spec("run-state", queue)
    if runs.partitions != state.partitions:
        raise ConfigError(f"{state.name} must have as many partitions as {runs.name}")
    return ExecutorRoutes(
        partition_of=partition_of,
        runs=runs.name,
        run_state=state.name,
        history=catalog.name("run-history"),
        retries=catalog.name("runs-retry"),
        dead_letters=catalog.name("runs-dead-letter"),
        history_partitions=catalog.partitions("run-history"),
        retry_partitions=catalog.partitions("runs-retry"),
        dead_letter_partitions=catalog.partitions("runs-dead-letter"),
    )


def _worker_config(settings: ExecutorSettings, routes: ExecutorRoutes) -> WorkerConfig:
    return WorkerConfig(
        instance=settings.instance(),
        routes=routes,
        max_in_flight=settings.max_in_flight,
        inherit_ms=int(settings.inherit_seconds * 1000),
        soon_ms=int(settings.retry_here_seconds * 1000),
        inputs_max=settings.transaction_inputs_max,
    )


def _edges(settings: ExecutorSettings, catalog: TopicCatalog, routes: ExecutorRoutes,
           targets: dict[str, Target], clock: Clock) -> Edges:  # fmt: skip
    servers, options = settings.bootstrap_servers, settings.client_options()
    group, deadline_s = catalog.executor_group(settings.queue), settings.call_deadline_seconds
    reader = ReaderConfig(servers, group, call_deadline_s=deadline_s, extra=options)
    producer = TransactionalProducer(ProducerConfig(
        servers, catalog.executor_transactional_id(settings.instance()),
        settings.transaction_timeout_ms, call_deadline_s=deadline_s, extra=options,
    ))  # fmt: skip
    producer.connect()
    topics = TopicCounts(_lookup(KafkaAdmin(options)), clock.monotonic_ms)
    return Edges(
        group=Ownership(OwnershipConfig(
            servers, group, routes.runs, session_timeout_ms=settings.session_timeout_ms,
            heartbeat_ms=settings.heartbeat_interval_ms, call_deadline_s=deadline_s,
            extra=options,
        )),
        answers=Positions(PositionsConfig(
            servers, group, routes.runs, ends=lambda number: ((routes.run_state, number),),
            extra=options,
        )),
        state_log=LogReader(reader),
        command_log=LogReader(reader),
        committer=producer,
        attempts=Attempts(targets),
        delivery=Directory(KafkaTarget(topics, catalog.owns, partition_of), topics, targets),
    )  # fmt: skip


def _lookup(admin: KafkaAdmin) -> Lookup:
    def partitions(topic: str) -> int | None:
        with WATCHDOG.guard("topic metadata", LOOKUP_DEADLINE_S):
            try:
                found = admin.topic_identities([topic]).get(topic)
            except ConfigError as error:  # e.g. not authorised: this run's trouble, not ours
                log.warning(events.TOPIC_DENIED, topic=topic, error=str(error))
                return None
        return None if found is None else found.partitions

    return partitions
