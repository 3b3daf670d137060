"""Committed positions in the background, against a real broker."""

import pytest
from confluent_kafka import TopicPartition

from scheduler.core.records import Outgoing
from scheduler.kafka.positions import Position, Positions
from scheduler.kafka.transaction import Committed, OffsetCommit
from tests.integration.kafka.edge import Edge, until

pytestmark = pytest.mark.integration


def answers(positions: Positions, count: int, *, stable: bool) -> dict[int, Position]:
    """The newest answer of each of ``count`` partitions."""
    found: dict[int, Position] = {}

    def enough() -> bool:
        for each in positions.drain(0.1):
            if each.stable is stable:
                found[each.partition] = each
        return len(found) >= count

    until(enough, "positions")
    return found


def test_metadata_of_256_partitions_comes_back(edge: Edge) -> None:
    topic = edge.topic("jobs", 256)
    ownership, producer = edge.member(topic, 256), edge.producer()
    texts = {number: f"cursor {number} " + "x" * 300 for number in range(256)}
    with ownership.fence() as fence:
        outcome = producer.commit(
            fence,
            [Outgoing(topic, 0, b"k", b"v")],
            {(topic, number): OffsetCommit(number, text) for number, text in texts.items()},
        )
    assert isinstance(outcome, Committed)
    positions = edge.positions(topic)
    positions.request(range(256))
    found = answers(positions, 256, stable=True)
    assert {n: (p.offset, p.metadata) for n, p in found.items()} == {
        number: (number, text) for number, text in texts.items()
    }
    for each in (positions, ownership, producer):
        each.close(10)


def test_nothing_committed_is_none(edge: Edge) -> None:
    topic = edge.topic("jobs")
    positions = edge.positions(topic)
    positions.request([2])
    assert answers(positions, 1, stable=True)[2] == Position(2, None, None, stable=True)
    positions.close(10)


def test_a_pending_transaction_holds_its_own_partitions_only(edge: Edge) -> None:
    topic, other = edge.topic("jobs"), edge.topic("cursors", 2)
    ownership, producer = edge.member(topic, 4), edge.producer()
    with ownership.fence() as fence:
        producer.commit(
            fence, [], {(topic, number): OffsetCommit(10, "before") for number in range(4)}
        )
    pending = edge.plain_transactional("pending")
    with ownership.fence() as fence:
        pending.begin_transaction()
        pending.produce(other, b"v", b"k", 1)
        pending.flush(30)
        pending.send_offsets_to_transaction(
            [TopicPartition(topic, 1, 20, metadata="after")], fence.metadata, 30
        )
    positions = edge.positions(topic, ends=lambda number: [(other, number % 2)])
    positions.watch(range(4))
    positions.request(range(4))

    stable = answers(positions, 3, stable=True)
    assert sorted(stable) == [0, 2, 3]
    assert stable[3].log_ends == {other: 1}  # the record of the open transaction counts
    assert stable[2].log_ends == {other: 0}
    watched = answers(positions, 4, stable=False)
    assert {(p.offset, p.metadata) for p in watched.values()} == {(10, "before")}

    pending.commit_transaction(30)
    late = answers(positions, 1, stable=True)
    assert (late[1].offset, late[1].metadata) == (20, "after")
    assert late[1].log_ends == {other: 2}  # and its marker
    for each in (positions, ownership, producer):
        each.close(10)


def test_watched_positions_keep_coming(edge: Edge) -> None:
    topic = edge.topic("jobs")
    ownership, producer = edge.member(topic, 4), edge.producer()
    positions = edge.positions(topic, watch_every_s=0.1)
    positions.watch([1])
    assert answers(positions, 1, stable=False)[1].offset is None
    with ownership.fence() as fence:
        producer.commit(fence, [], {(topic, 1): OffsetCommit(5, "m")})

    def seen() -> bool:
        return answers(positions, 1, stable=False)[1] == Position(1, 5, "m", stable=False)

    until(seen, "the new position")
    positions.watch([])
    positions.close(10)
    ownership.close(10)
    producer.close(10)
