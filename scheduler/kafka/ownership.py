"""Ownership apart from data: a group consumer on one topic that never fetches.

It yields the assignment and the generation that fences transactions; offsets committed in the
name of its membership carry the cursors. Every partition is paused as it is assigned.

**No ownership callback can run inside a transaction.** A member that serves a revocation and
then commits with fresh metadata is *accepted* for the partition it has just lost (seen on
Kafka 4.1 and 4.4). So a transaction holds a `Fence`, and while one is open `Ownership.poll`,
the only place where callbacks run, refuses.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from scheduler.errors import ClientFatalError, ConfigError, FencedError, invariant
from scheduler.kafka.client import LOGGER, ErrorLog, Options, client_options
from scheduler.kafka.watchdog import WATCHDOG, Watchdog, run_bounded

_MAGIC = b"CGMDv2:"
_NO_INSTANCE = 1
_DRAIN = 1_000


@dataclass(frozen=True, slots=True)
class OwnershipConfig:
    """Membership of one group on one topic.

    Attributes:
        instance_id: static membership, for hosts with stable names; a static member whose
            broker was away for longer than the session fences itself, so ``None`` by default.
        session_timeout_ms: silence after which the partitions go to others.
        heartbeat_ms: how soon a rebalance is noticed; under a third of the session.
        call_deadline_s: a client call that takes longer ends the process.
        extra: further librdkafka options.
    """

    bootstrap_servers: str
    group: str
    topic: str
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    heartbeat_ms: int = 500
    call_deadline_s: float = 30.0
    extra: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OwnershipChange:
    """What happened to the assignment since the last poll, in sum.

    A partition taken away and given back in between is in both ``revoked`` (or ``lost``) and
    ``assigned``: let go first, then take. In ``lost`` another member may own it already.
    """

    assigned: frozenset[int] = frozenset()
    revoked: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.assigned or self.revoked or self.lost)


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """What a broker checks a transactional offset commit against."""

    group: str
    generation: int
    member: str
    instance: str | None


@dataclass(slots=True)
class Fence:
    """Proof of membership for one transaction, taken after the last poll.

    Attributes:
        metadata: opaque, for ``send_offsets_to_transaction``.
        is_open: ends with the ``with`` block that `Ownership.fence` opened.
    """

    metadata: Any
    generation: int
    member: str
    is_open: bool = True


def parse_group_metadata(data: bytes) -> GroupMetadata:
    """Read the bytes of ``consumer_group_metadata()``.

    Layout: ``CGMDv2:``, generation (int32, native), group, member, each ended by NUL, a byte
    1 for "no instance id" or 0 followed by the instance id and NUL.
    Source: librdkafka ``rd_kafka_consumer_group_metadata_write``.

    Raises:
        FencedError: they are not of this layout; no transaction may rest on them.
    """
    head = len(_MAGIC) + 4
    if not data.startswith(_MAGIC) or len(data) < head:
        raise FencedError(f"group metadata of an unknown layout: {data[:16]!r}")
    (generation,) = struct.unpack_from("=i", data, len(_MAGIC))
    parts = data[head:].split(b"\0", 2)
    if len(parts) != 3 or not parts[2]:
        raise FencedError(f"group metadata cut short: {data!r}")
    group, member, rest = parts
    try:
        instance = None if rest[0] == _NO_INSTANCE else rest[1:].rstrip(b"\0").decode("ascii")
        return GroupMetadata(group.decode("ascii"), generation, member.decode("ascii"), instance)
    except UnicodeDecodeError as error:
        raise FencedError(f"group metadata with names that are not ASCII: {data!r}") from error


class Ownership:
    """One membership. Everything here belongs to one thread.

    Raises:
        ConfigError: an id that librdkafka could not read back, or an option of ours in ``extra``.
    """

    def __init__(self, config: OwnershipConfig, watchdog: Watchdog = WATCHDOG) -> None:
        _check_printable("group", config.group)
        if config.instance_id is not None:
            _check_printable("instance id", config.instance_id)
        self._config, self._watchdog = config, watchdog
        self._errors = ErrorLog("ownership consumer")
        self._owned: set[int] = set()
        self._assigned: set[int] = set()
        self._revoked: set[int] = set()
        self._lost: set[int] = set()
        self._fence: Fence | None = None
        self._consumer = Consumer({**_options(config), "error_cb": self._errors})
        self._consumer.subscribe(
            [config.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    @property
    def owned(self) -> frozenset[int]:
        """Partitions owned as of the last poll."""
        return frozenset(self._owned)

    def poll(self, timeout_s: float = 0.0) -> OwnershipChange:
        """Serve the group's callbacks and return what they changed.

        Must be called at least once a minute (``max.poll.interval.ms``).

        Raises:
            InvariantViolation: a fence is open.
            ClientFatalError: the membership is beyond repair; end the process.
        """
        invariant(self._fence is None, "ownership polled while a fence is open")
        with self._watchdog.guard("ownership poll", timeout_s + self._config.call_deadline_s):
            message = self._consumer.poll(timeout_s)
            messages = [] if message is None else [message, *self._consumer.consume(_DRAIN, 0)]
        for each in messages:
            self._note(each.error())
        self._errors.check()
        change = OwnershipChange(
            frozenset(self._assigned), frozenset(self._revoked), frozenset(self._lost)
        )
        self._assigned, self._revoked, self._lost = set(), set(), set()
        return change

    @contextmanager
    def fence(self) -> Iterator[Fence]:
        """Open the fence of one transaction; fresh metadata, read after the last poll.

        Raises:
            FencedError: no member of the group now. A broker accepts a transaction of
                generation -1 and an empty member without any check, so it must not be tried.
        """
        invariant(self._fence is None, "a fence is open already")
        metadata = self._consumer.consumer_group_metadata()
        parsed = parse_group_metadata(bytes(metadata))
        if parsed.generation < 1 or not parsed.member:
            raise FencedError(
                f"not a member of group {self._config.group} now "
                f"(generation {parsed.generation}, member {parsed.member!r})"
            )
        self._fence = fence = Fence(metadata, parsed.generation, parsed.member)
        try:
            yield fence
        finally:
            fence.is_open = False
            self._fence = None

    def close(self, deadline_s: float) -> None:
        """Leave the group, waiting at most ``deadline_s`` seconds; a static member stays in it."""
        if not run_bounded("close ownership", self._consumer.close, deadline_s):
            LOGGER.warning("ownership consumer did not close within %g s", deadline_s)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        if partitions:
            consumer.pause(partitions)
        numbers = {each.partition for each in partitions}
        self._owned |= numbers
        self._assigned |= numbers

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._let_go(consumer, partitions, self._revoked)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._let_go(consumer, partitions, self._lost)

    def _let_go(self, consumer: Consumer, partitions: list[TopicPartition], gone: set[int]) -> None:
        invariant(self._fence is None, "partitions taken away while a fence is open")
        consumer.incremental_unassign(partitions)
        numbers = {each.partition for each in partitions}
        self._owned -= numbers
        self._assigned -= numbers
        gone |= numbers

    def _note(self, error: KafkaError | None) -> None:
        """An event that is not a record. A record itself cannot come: all is paused."""
        invariant(error is not None, "a paused ownership consumer fetched a record")
        if error is None or error.code() == KafkaError._AUTO_OFFSET_RESET:
            return  # nothing committed yet: no position to fetch from, and none is wanted
        if error.fatal():
            raise ClientFatalError("ownership consumer", f"{error.name()}: {error.str()}")
        LOGGER.warning("ownership consumer: %s: %s", error.name(), error.str())


def _options(config: OwnershipConfig) -> dict[str, Any]:
    own: dict[str, str | int | float | bool] = {
        "group.id": config.group,
        "group.protocol": "classic",  # KIP-848 brokers refuse sessions under 45 s by default
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": config.session_timeout_ms,
        "heartbeat.interval.ms": config.heartbeat_ms,
        "max.poll.interval.ms": 60_000,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
    }
    if config.instance_id is not None:
        own["group.instance.id"] = config.instance_id
    return client_options(config.bootstrap_servers, config.extra, own)


def _check_printable(what: str, name: str) -> None:
    """Librdkafka cannot read group metadata back whose ids are not printable ASCII."""
    if not name or not all(33 <= ord(sign) <= 126 for sign in name):
        raise ConfigError(f"{what} {name!r}: must be printable ASCII without spaces")
