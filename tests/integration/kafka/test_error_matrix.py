"""Protocol errors, injected one by one: which outcome each ends in, and that work goes on.

Runs on librdkafka's own mock cluster (see mock_cluster.py); needs no broker.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from scheduler.core.records import Outgoing
from scheduler.kafka.ownership import Fence
from scheduler.kafka.transaction import (
    Aborted,
    Committed,
    OffsetCommit,
    Outcome,
    ProducerConfig,
    TransactionalProducer,
    Uncertain,
)
from tests.integration.kafka import mock_cluster as mock

METADATA = b"CGMDv2:" + (1).to_bytes(4, "little") + b"group\0member\0\1"


@pytest.fixture
def cluster() -> mock.MockCluster:
    made = mock.MockCluster()
    made.create("jobs", 1)
    made.create("runs", 1)
    return made


@pytest.fixture
def producer(cluster: mock.MockCluster) -> Iterator[TransactionalProducer]:
    made = TransactionalProducer(ProducerConfig(cluster.bootstrap, "tx", retry_s=3.0))
    assert made.connect()
    yield made
    made.close(10)


def send(producer: TransactionalProducer) -> Outcome:
    fence = Fence(METADATA, 1, "member")
    return producer.commit(fence, [Outgoing("runs", 0, b"k", b"v")], {("jobs", 0): OffsetCommit(1)})


ABORTS = [
    (mock.TXN_OFFSET_COMMIT, KafkaError.ILLEGAL_GENERATION, True),
    (mock.TXN_OFFSET_COMMIT, KafkaError.UNKNOWN_MEMBER_ID, True),
    (mock.TXN_OFFSET_COMMIT, KafkaError.FENCED_INSTANCE_ID, True),
    (mock.TXN_OFFSET_COMMIT, KafkaError.OFFSET_METADATA_TOO_LARGE, False),
    (mock.PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE, False),
    (mock.PRODUCE, KafkaError.TRANSACTION_ABORTABLE, False),
    (mock.ADD_PARTITIONS, KafkaError.TRANSACTION_ABORTABLE, False),
]


@pytest.mark.parametrize(("api", "code", "fenced"), ABORTS)
def test_aborted_and_the_next_transaction_commits(
    cluster: mock.MockCluster, producer: TransactionalProducer, api: int, code: int, fenced: bool
) -> None:
    assert isinstance(send(producer), Committed)
    cluster.inject(api, [code])
    outcome = send(producer)
    assert isinstance(outcome, Aborted), outcome
    assert outcome.fenced is fenced
    assert any(isinstance(send(producer), Committed) for _ in range(2))


REPLACED = [
    (mock.END_TXN, KafkaError.INVALID_PRODUCER_EPOCH),
    (mock.END_TXN, KafkaError.PRODUCER_FENCED),
    (mock.END_TXN, KafkaError.INVALID_TXN_STATE),
    (mock.PRODUCE, KafkaError.INVALID_PRODUCER_EPOCH),
    (mock.PRODUCE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER),
]


@pytest.mark.parametrize(("api", "code"), REPLACED)
def test_a_fatal_error_replaces_the_producer(
    cluster: mock.MockCluster, producer: TransactionalProducer, api: int, code: int
) -> None:
    before = producer._current()
    cluster.inject(api, [code])
    outcome = send(producer)
    assert isinstance(outcome, Uncertain), outcome
    assert producer._current() is not before
    assert isinstance(send(producer), Committed)


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (mock.PRODUCE, KafkaError.NOT_ENOUGH_REPLICAS),
        (mock.TXN_OFFSET_COMMIT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
        (mock.ADD_PARTITIONS, KafkaError.CONCURRENT_TRANSACTIONS),
    ],
)
def test_what_passes_is_retried_inside(
    cluster: mock.MockCluster, producer: TransactionalProducer, api: int, code: int
) -> None:
    cluster.inject(api, [code] * 2)
    assert isinstance(send(producer), Committed)


def test_a_commit_that_had_to_be_repeated_is_not_followed_by_another_of_its_epoch(
    cluster: mock.MockCluster, producer: TransactionalProducer
) -> None:
    """CONCURRENT_TRANSACTIONS beyond the call's timeout: only commit may be called again."""
    before = producer._current()
    # Waits double from 5 ms: eight of them outlast one call, a third of retry_s.
    cluster.inject(mock.END_TXN, [KafkaError.CONCURRENT_TRANSACTIONS] * 8)
    outcome = send(producer)
    assert isinstance(outcome, Committed), outcome
    assert outcome.replaced
    assert producer._current() is not before
    assert isinstance(send(producer), Committed)


def test_a_commit_that_never_ends_is_uncertain(
    cluster: mock.MockCluster, producer: TransactionalProducer
) -> None:
    before = producer._current()
    cluster.inject(mock.END_TXN, [KafkaError.CONCURRENT_TRANSACTIONS] * 300)
    outcome = send(producer)
    assert isinstance(outcome, Uncertain), outcome
    assert producer._current() is not before
