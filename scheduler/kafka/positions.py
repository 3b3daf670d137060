"""What is committed for a group, asked in the background: positions and the cursors with them.

Two questions. `Positions.request` (take-over): stable answers, each only once no transaction
that commits the partition's offset is pending. `Positions.watch` (standby): the last stable
ones, refreshed all the time.

Both are asked by consumers of the group that never subscribe, so nothing here is a member of it:
``committed()`` of a read_committed consumer waits while a transaction is pending, of a
read_uncommitted one it gives the last stable offset *with its metadata*. One pending partition
makes the whole call wait; so a call that times out is made again for each half, and one pending
transaction holds up nobody else's partitions. (The admin client's request would answer for each
partition by itself, but crashes the process when the coordinator moves: decision 0040.)
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from scheduler.errors import ConfigError, RetryableError
from scheduler.kafka.admin import KafkaAdmin
from scheduler.kafka.client import LOGGER, Options, client_options, error_of
from scheduler.kafka.watchdog import WATCHDOG, Watchdog

_NONE = -1001

PATIENCE_S = 0.3
"""How long one question for stable positions may take before it is halved: an answer takes a
few milliseconds, and what is pending is ended by its owner in far less, or by the broker."""

ROUND_S = 3.0
"""Of halving; then what was found is handed over and the rest is asked for anew."""


def no_ends(_partition: int) -> tuple[tuple[str, int], ...]:
    """No log ends are wanted."""
    return ()


@dataclass(frozen=True, slots=True)
class PositionsConfig:
    """What is asked, of which group.

    Attributes:
        ends: for a partition, the logs (topic, partition; one of a topic at most) whose end is
            wanted with its stable answer.
        watch_every_s: how often watched partitions are refreshed.
        retry_s: how soon an unstable partition is asked for again.
        request_s: how long one request may take.
        extra: further librdkafka options.
    """

    bootstrap_servers: str
    group: str
    topic: str
    ends: Callable[[int], Iterable[tuple[str, int]]] = no_ends
    watch_every_s: float = 1.0
    retry_s: float = 0.05
    request_s: float = 10.0
    extra: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Position:
    """What is committed for one partition.

    Attributes:
        offset: ``None`` when nothing is committed.
        metadata: text committed with it, ``None`` for none.
        stable: no transaction was pending for it (an answer to `Positions.request`).
        log_ends: for stable answers, by topic: end of the log with everything still open or
            without its marker (READ_UNCOMMITTED), taken *after* the position.
    """

    partition: int
    offset: int | None
    metadata: str | None
    stable: bool
    log_ends: Mapping[str, int] = field(default_factory=dict)


class Positions:
    """Asks in a thread of its own; no method blocks its caller unless told to."""

    def __init__(self, config: PositionsConfig, watchdog: Watchdog = WATCHDOG) -> None:
        self._config, self._watchdog = config, watchdog
        self._wake = threading.Condition()
        self._wanted: dict[int, int] = {}
        self._requests = 0
        self._watched: frozenset[int] = frozenset()
        self._answers: list[Position] = []
        self._closed = False
        self._refresh_at = 0.0
        self._thread = threading.Thread(target=self._run, name="positions", daemon=True)
        self._thread.start()

    def request(self, partitions: Iterable[int]) -> None:
        """Ask for a stable answer for each; answers still out are asked for anew."""
        with self._wake:
            self._requests += 1
            self._wanted.update(dict.fromkeys(partitions, self._requests))
            self._wake.notify_all()

    def watch(self, partitions: Iterable[int]) -> None:
        """Replace the set of partitions whose last stable positions keep coming."""
        with self._wake:
            self._watched = frozenset(partitions)
            self._refresh_at = 0.0
            self._wake.notify_all()

    def drain(self, wait_s: float = 0.0) -> list[Position]:
        """Return the answers since the last call, oldest first; wait for one if asked to."""
        with self._wake:
            if wait_s > 0:
                self._wake.wait_for(lambda: self._answers or self._closed, wait_s)
            answers, self._answers = self._answers, []
        return answers

    def close(self, deadline_s: float) -> None:
        """End the thread, waiting at most ``deadline_s`` seconds."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        self._thread.join(deadline_s)
        if self._thread.is_alive():
            LOGGER.warning("positions did not end within %g s", deadline_s)

    # ---- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        asker = _Asker(self._config)
        self._serve(asker)
        asker.close()

    def _serve(self, asker: "_Asker") -> None:
        while self._wait():
            try:
                with self._watchdog.guard("positions", 6 * self._config.request_s):
                    self._round(asker)
            except (KafkaException, RetryableError, ConfigError, TimeoutError) as failure:
                LOGGER.warning("positions: %s; asked again", failure)
                asker.renew()
                with self._wake:
                    self._wake.wait_for(lambda: self._closed, self._config.retry_s)

    def _wait(self) -> bool:
        """Wait until there is something to ask; False when closed."""
        with self._wake:
            while not self._closed:
                now = time.monotonic()
                if self._wanted or (self._watched and now >= self._refresh_at):
                    return True
                due = self._refresh_at - now if self._watched else None
                self._wake.wait(due)
            return False

    def _round(self, asker: "_Asker") -> None:
        with self._wake:
            wanted, watched = dict(self._wanted), self._watched
            refresh = bool(watched) and time.monotonic() >= self._refresh_at
        if wanted:
            stable = asker.stable(sorted(wanted))
            self._answer_stable(stable, wanted)
        if refresh:
            answers = asker.last_stable(sorted(watched))
            with self._wake:
                self._answers += [each for each in answers if each.partition in self._watched]
                self._refresh_at = time.monotonic() + self._config.watch_every_s
                self._wake.notify_all()
        with self._wake:
            if self._wanted.keys() & wanted.keys():
                self._wake.wait_for(lambda: self._closed, self._config.retry_s)

    def _answer_stable(self, stable: list[Position], wanted: Mapping[int, int]) -> None:
        with self._wake:
            for each in stable:
                # Asked for anew meanwhile: this answer may be older than that request.
                if self._wanted.get(each.partition) == wanted[each.partition]:
                    del self._wanted[each.partition]
                    self._answers.append(each)
            self._wake.notify_all()


class _Asker:
    """The requests themselves; the admin client is made anew for stale leader epochs."""

    def __init__(self, config: PositionsConfig) -> None:
        self._config = config
        self._patience_s = PATIENCE_S
        self._committed = Consumer(_options(config, "read_committed"))
        self._last_stable = Consumer(_options(config, "read_uncommitted"))
        self.renew()

    def renew(self) -> None:
        """Forget what the admin client knows of the brokers."""
        config = self._config
        options = client_options(config.bootstrap_servers, config.extra, {})
        self._admin = KafkaAdmin(options, request_s=config.request_s)

    def close(self) -> None:
        """Close the consumers; they have nothing to leave or to commit."""
        self._committed.close()
        self._last_stable.close()

    def stable(self, partitions: list[int]) -> list[Position]:
        """Positions with log ends of those partitions no transaction is pending for."""
        found = self._settled(partitions)
        if not found:
            return []
        ends = self._ends([each.partition for each in found])
        return [
            replace(
                each,
                log_ends={place[0]: ends[place] for place in self._config.ends(each.partition)},
            )
            for each in found
        ]

    def last_stable(self, partitions: list[int]) -> list[Position]:
        """Positions whatever is pending."""
        return self._ask(self._last_stable, partitions, self._config.request_s, stable=False)

    def _settled(self, partitions: list[int]) -> list[Position]:
        """The stable ones, found by halving what times out, for one round's time."""
        until = time.monotonic() + ROUND_S
        left, found = [partitions], list[Position]()
        while left and time.monotonic() < until:
            asked = left.pop()
            try:
                found += self._ask(self._committed, asked, self._patience_s, stable=True)
            except KafkaException as failure:
                if error_of(failure).code() != KafkaError._TIMED_OUT:
                    raise
                middle = len(asked) // 2
                left += [part for part in (asked[:middle], asked[middle:]) if middle]
        # Nothing at all may also mean a slow broker rather than pending transactions.
        slow = not found
        self._patience_s = min(2 * self._patience_s, ROUND_S) if slow else PATIENCE_S
        return found

    def _ask(
        self, consumer: Consumer, partitions: list[int], timeout_s: float, *, stable: bool
    ) -> list[Position]:
        places = [TopicPartition(self._config.topic, number) for number in partitions]
        positions = []
        for each in consumer.committed(places, timeout_s):
            if each.error is not None:
                raise KafkaException(each.error)
            offset = None if each.offset <= _NONE else each.offset
            metadata = each.metadata if offset is not None else None
            positions.append(Position(each.partition, offset, metadata, stable=stable))
        return positions

    def _ends(self, partitions: list[int]) -> dict[tuple[str, int], int]:
        wanted: dict[str, set[int]] = defaultdict(set)
        for number in partitions:
            for topic, log in self._config.ends(number):
                wanted[topic].add(log)
        return {
            (topic, log): end
            for topic, logs in wanted.items()
            for log, end in self._admin.log_ends(topic, sorted(logs)).items()
        }


def _options(config: PositionsConfig, isolation: str) -> dict[str, Any]:
    own: dict[str, str | int | float | bool] = {
        "group.id": config.group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": isolation,
        "retry.backoff.ms": 20,  # how soon a pending position is asked for again
        "retry.backoff.max.ms": 100,
    }
    return client_options(config.bootstrap_servers, config.extra, own)
