"""``duewheel up``: the whole line on one machine, watched until Ctrl-C.

Order of things: Kafka, topics, follow the history, start the workers, apply the examples, print.
Ctrl-C (or SIGTERM) undoes it the other way round; a second Ctrl-C does not cut that short.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from devkafka.jars import KafkaUnavailable
from devkafka.provide import provide
from duewheel import example_handlers
from duewheel.example_jobs import TOPIC, example_jobs
from duewheel.follow import lines
from duewheel.supervisor import Child, stop_all
from scheduler.cli.apply import apply_definitions
from scheduler.cli.cluster import Cluster, Deadline
from scheduler.cli.session import Session
from scheduler.contract.topics import TopicSpec
from scheduler.errors import ConfigError
from scheduler.kafka.admin import KafkaAdmin
from scheduler.kafka.admin import apply as apply_topics
from scheduler.runtime.clock import SystemClock
from scheduler.settings import BOOTSTRAP_VARIABLE, VARIABLE_PREFIX, KafkaSettings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HANDLERS_VARIABLE = f"{VARIABLE_PREFIX}HANDLERS"
_PREPARE_S = 60.0
_LOOK_S = 0.2
"""Between two looks at the children, while no run happens."""


@dataclass(frozen=True, slots=True)
class Up:
    """One call of ``duewheel up``.

    Attributes:
        root: the project's folder: Kafka's data, state and logs lie in its ``.duewheel``.
        examples: whether the example jobs are applied.
        say: prints one line.
    """

    root: Path
    examples: bool
    say: Callable[[str], None]

    def run(self) -> None:
        """Run until Ctrl-C.

        Raises:
            ConfigError: Kafka cannot be had, or a worker ended for a reason that stays.
        """
        for number in _SIGNALS:
            signal.signal(number, _stop_once)
        try:
            with ExitStack() as stack:
                self._run(stack)
        except KeyboardInterrupt:
            self.say("stopped")
        except KafkaUnavailable as error:
            raise ConfigError(str(error)) from error

    def _run(self, stack: ExitStack) -> None:
        self.say("Getting a Kafka ...")
        provided = provide(self.root)
        stack.callback(provided.stop)
        self.say(f"Kafka ({provided.origin}) at {provided.bootstrap}. In another shell:")
        self.say(f"  export KAFKA_BOOTSTRAP_SERVERS={provided.bootstrap}")
        settings = KafkaSettings.load(bootstrap_servers=provided.bootstrap)
        session = self._prepare(settings)
        catalog = session.catalog
        deadline = Deadline.after(_PREPARE_S, "finding the ends of the history")
        watched = {
            catalog.name(base): range(catalog.partitions(base))
            for base in ("run-history", "job-status")
        }
        tail = stack.enter_context(session.cluster.tail(watched, deadline))
        children = self._start(stack, settings)
        if self.examples:
            self._apply_examples(session)
        self.say("Runs as they happen (UTC); Ctrl-C stops everything.")
        while True:
            for line in lines(tail, _LOOK_S):
                self.say(line)
            for child in children:
                if news := child.look(time.monotonic()):
                    self.say(news)

    def _prepare(self, settings: KafkaSettings) -> Session:
        catalog, options = settings.catalog(), settings.client_options()
        # Its clients' own lines would come between ours when Kafka ends before this process.
        admin = KafkaAdmin({**options, "log_level": 0}, settings.replication_factor)
        changed = apply_topics(catalog, admin)
        self.say(f"Topics are as topics.yaml says ({len(changed)} change(s)).")
        if self.examples:
            admin.create([_example_topic()])
        return Session(Cluster(options), catalog, SystemClock())

    def _start(self, stack: ExitStack, settings: KafkaSettings) -> list[Child]:
        children = [self._child(name, settings) for name in ("scheduler", "executor")]
        stack.callback(stop_all, children)
        for child in children:
            child.start()
            self.say(f"{child.name} started (process {child.pid}); its log: {child.log}")
        return children

    def _child(self, name: str, settings: KafkaSettings) -> Child:
        handlers = [os.environ.get(_HANDLERS_VARIABLE), example_handlers.__name__]
        environment = {
            **os.environ,
            _HANDLERS_VARIABLE: ",".join(each for each in handlers if each),
            BOOTSTRAP_VARIABLE: settings.bootstrap_servers,
        }
        log = self.root / ".duewheel" / "log" / f"{name}.log"
        return Child(name, [sys.executable, "-m", "duewheel", name], environment, log)

    def _apply_examples(self, session: Session) -> None:
        definitions = example_jobs(session.clock.now_ms())
        apply_definitions(session, definitions, wait=False, deadline_s=_PREPARE_S)
        self.say(f"{len(definitions)} example jobs written to {session.catalog.name('jobs')}.")


def _stop_once(_number: int, _frame: FrameType | None) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _example_topic() -> TopicSpec:
    return TopicSpec(
        base=TOPIC,
        name=TOPIC,
        key="job_id",
        partitions=1,
        required={},
        advised={},
        writers=("executor",),
        readers=("users",),
        purpose="Where the example jobs with a Kafka target write to.",
    )
