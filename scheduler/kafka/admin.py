"""Topics compared with topics.yaml, created and mended; and the few facts asked of a cluster.

Comparing is pure and lies in `topic_difference`; asking and changing is `KafkaAdmin`. Nothing here
deletes a topic or changes a partition count: both would break the guarantees for good.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from scheduler.contract.topics import TopicCatalog, TopicSpec
from scheduler.errors import ConfigError, RetryableError
from scheduler.kafka.topic_difference import (
    PARTITIONS,
    Severity,
    TopicDifference,
    TopicState,
    compare,
)

REQUEST_S = 15.0
"""One request: a broker that restarts is back within it."""

CREATE_S = 60.0
"""All topics at once: more than a thousand partitions take a small cluster some seconds."""

PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 1.0
"""Between tries, doubling: a leader is elected in well under a second, a broker back in ten."""

REPLICATION_MAX = 3
"""Copies of each topic where the cluster has as many brokers: one may be lost at any time."""


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """What a local store is compared with before it is trusted.

    Attributes:
        topic_id: changes when a topic is deleted and created again.
        partitions: its partition count.
    """

    topic_id: str
    partitions: int


class KafkaAdmin:
    """Requests to a cluster, each with a deadline.

    Args:
        config: client options; ``bootstrap.servers`` at least.
        replication: copies of each topic created; ``None`` for the cluster's brokers, at most 3.
        request_s: deadline of one request, in seconds.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        replication: int | None = None,
        *,
        request_s: float = REQUEST_S,
    ) -> None:
        self._config = dict(config)
        self._replication = replication
        self._client = AdminClient(self._config)
        self._pause = threading.Event()
        self._deadline = {"request_timeout": request_s}

    def cluster_id(self) -> str:
        """Return the cluster's id.

        Raises:
            RetryableError: no broker answers.
        """
        return str(self._ask(lambda client: client.describe_cluster(**self._deadline)).cluster_id)

    def topic_identities(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        """Return id and partition count of each topic; topics that do not exist are left out.

        Raises:
            RetryableError: no broker answers.
        """
        wanted = TopicCollection(list(topics))
        futures = self._client.describe_topics(wanted, **self._deadline)
        found: dict[str, TopicIdentity] = {}
        for name, future in futures.items():
            described = _result_or_missing(future)
            if described is not None:
                found[name] = TopicIdentity(str(described.topic_id), len(described.partitions))
        return found

    def topic_states(self, topics: Iterable[str]) -> dict[str, TopicState]:
        """Return partition count and settings of each topic that exists.

        Raises:
            RetryableError: no broker answers.
        """
        identities = self.topic_identities(topics)
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in identities]
        if not resources:
            return {}
        states = {}
        for resource, future in self._client.describe_configs(resources, **self._deadline).items():
            entries = _result(future)
            settings = {name: str(entry.value) for name, entry in entries.items()}
            states[resource.name] = TopicState(identities[resource.name].partitions, settings)
        return states

    def create(self, specs: Iterable[TopicSpec]) -> None:
        """Create topics; one that appeared meanwhile is fine.

        Raises:
            ConfigError: the cluster refuses one.
            RetryableError: no broker answers.
        """
        copies = self._replication or min(REPLICATION_MAX, self._brokers())
        in_sync = {"min.insync.replicas": str(max(1, copies - 1))}
        topics = [
            NewTopic(
                spec.name,
                num_partitions=spec.partitions,
                replication_factor=copies,
                config={**in_sync, **spec.settings},
            )
            for spec in specs
        ]
        futures = self._client.create_topics(
            topics, operation_timeout=CREATE_S, request_timeout=CREATE_S
        )
        for future in futures.values():
            _result(future, allowed={KafkaError.TOPIC_ALREADY_EXISTS})

    def alter(self, topic: str, settings: Mapping[str, str]) -> None:
        """Set ``settings`` of a topic and leave its others alone.

        Raises:
            ConfigError: the cluster refuses.
            RetryableError: no broker answers.
        """
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for future in self._client.incremental_alter_configs([resource], **self._deadline).values():
            _result(future)

    def log_ends(
        self, topic: str, partitions: Iterable[int], *, committed: bool = False
    ) -> dict[int, int]:
        """Return the end of each partition's log: the offset its next record will get.

        Args:
            topic: full name.
            partitions: which ones.
            committed: ends for a read_committed reader (the last stable offset) instead; that
                one waits behind any open transaction, a user's included.

        Raises:
            RetryableError: no broker answers.
        """
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = {ClientPartition(topic, number): OffsetSpec.latest() for number in partitions}
        if not asked:
            return {}

        def ask() -> dict[int, int]:
            futures = self._client.list_offsets(asked, isolation_level=isolation, **self._deadline)
            return {place.partition: _result(future).offset for place, future in futures.items()}

        return self._with_new_clients(ask)

    def await_leaders(self, specs: Iterable[TopicSpec], deadline_s: float = CREATE_S) -> None:
        """Wait until every partition of the topics can be written to and read.

        A cluster answers that it has created a topic before its brokers know of it.

        Raises:
            RetryableError: not within ``deadline_s`` seconds.
        """
        until = time.monotonic() + deadline_s
        waiting = {spec.name: spec.partitions for spec in specs}
        while waiting:
            for name, partitions in list(waiting.items()):
                if self._served(name, partitions):
                    del waiting[name]
            if waiting and time.monotonic() > until:
                raise RetryableError(f"topics without leaders after {deadline_s:g} s: {waiting}")

    def _served(self, topic: str, partitions: int) -> bool:
        try:
            return len(self.log_ends(topic, range(partitions))) == partitions
        except RetryableError:
            return False

    def _with_new_clients(self, ask: Callable[[], dict[int, int]]) -> dict[int, int]:
        """Ask again until a deadline, with a new client each time.

        After a broker restart a client's cached leader epoch stays stale for good, and it answers
        FENCED_LEADER_EPOCH for ever; NOT_LEADER_FOR_PARTITION right after a topic's creation goes
        by itself.
        """
        until = time.monotonic() + self._deadline["request_timeout"]
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                return ask()
            except RetryableError:
                if time.monotonic() + pause_s > until:
                    raise
            self._pause.wait(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)
            self._client = AdminClient(self._config)

    def _brokers(self) -> int:
        return len(self._ask(lambda client: client.describe_cluster(**self._deadline)).nodes)

    def _ask(self, request: Callable[[AdminClient], Future[Any]]) -> Any:
        return _result(request(self._client))


def plan(catalog: TopicCatalog, admin: KafkaAdmin) -> list[TopicDifference]:
    """Return what is different in the cluster; see `compare`.

    Raises:
        RetryableError: no broker answers.
    """
    return compare(catalog, admin.topic_states([spec.name for spec in catalog]))


def apply(catalog: TopicCatalog, admin: KafkaAdmin) -> list[TopicDifference]:
    """Create what is missing, mend every setting, and return what differed before.

    Raises:
        ConfigError: a topic has another partition count, which nothing can mend in place.
        RetryableError: no broker answers.
    """
    differences = plan(catalog, admin)
    missing = {each.topic for each in differences if each.severity is Severity.MISSING}
    if missing:
        new = [spec for spec in catalog if spec.name in missing]
        admin.create(new)
        admin.await_leaders(new)
    for topic, settings in _alterations(differences).items():
        admin.alter(topic, settings)
    beyond_mending = [each for each in differences if each.setting == PARTITIONS]
    if beyond_mending:
        raise ConfigError("; ".join(str(each) for each in beyond_mending))
    return differences


def check(catalog: TopicCatalog, admin: KafkaAdmin) -> list[TopicDifference]:
    """Refuse topics that break a guarantee; return the merely advisory differences.

    Every service calls this before it starts.

    Raises:
        ConfigError: a topic is missing or breaks a guarantee; the message names every one and
            the command that mends it.
        RetryableError: no broker answers.
    """
    differences = plan(catalog, admin)
    grave = [each for each in differences if each.severity is not Severity.ADVISORY]
    if grave:
        raise ConfigError("\n".join(str(each) for each in grave))
    return differences


def _alterations(differences: Iterable[TopicDifference]) -> dict[str, dict[str, str]]:
    alterations: dict[str, dict[str, str]] = {}
    for each in differences:
        if each.setting and each.setting != PARTITIONS:
            alterations.setdefault(each.topic, {})[each.setting] = each.wanted
    return alterations


def _result_or_missing(future: Future[Any]) -> Any:
    return _result(future, allowed={KafkaError.UNKNOWN_TOPIC_OR_PART})


_OPERATOR_MUST_ACT = {
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
}


def _result(future: Future[Any], allowed: Iterable[int] = ()) -> Any:
    """Return a future's result; ``None`` for an allowed error."""
    try:
        return future.result(timeout=CREATE_S + REQUEST_S)
    except KafkaException as error:
        reason = error.args[0]
        if reason.code() in allowed:
            return None
        if reason.code() in _OPERATOR_MUST_ACT:
            raise ConfigError(f"the cluster refuses: {reason.str()}") from error
        raise RetryableError(f"the cluster does not answer: {reason.str()}") from error
    except TimeoutError as error:
        raise RetryableError("the cluster does not answer in time") from error
