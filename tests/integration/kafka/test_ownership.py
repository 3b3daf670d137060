"""Membership apart from data, against a real broker."""

import pytest

from scheduler.core.records import Outgoing
from scheduler.errors import FencedError, InvariantViolation
from scheduler.kafka.ownership import Ownership, OwnershipConfig
from scheduler.kafka.transaction import Aborted, Committed, OffsetCommit
from tests.integration.kafka.edge import Edge, poll_until, until

pytestmark = pytest.mark.integration


def test_a_member_owns_everything_and_never_fetches(edge: Edge) -> None:
    topic = edge.topic("jobs")
    edge.write(topic, 0, [b"1", b"2"])
    ownership = edge.member(topic, 4)
    with ownership.fence() as before:
        generation = before.generation
    for _ in range(20):
        ownership.poll(0.1)  # a fetched record would raise
    with ownership.fence() as after:
        assert after.generation == generation >= 1
    assert ownership.owned == frozenset(range(4))
    ownership.close(10)


def test_a_paused_member_still_commits_offsets_in_transactions(edge: Edge) -> None:
    topic = edge.topic("jobs")
    ownership, producer = edge.member(topic, 4), edge.producer()
    with ownership.fence() as fence:
        outcome = producer.commit(
            fence, [Outgoing(topic, 1, b"k", b"v")], {(topic, 1): OffsetCommit(0, "cursor")}
        )
    assert isinstance(outcome, Committed)
    ownership.close(10)
    producer.close(10)


def test_partitions_go_from_one_member_to_another(edge: Edge) -> None:
    topic = edge.topic("jobs")
    first = edge.member(topic, 4)
    second = edge.ownership(topic)
    revoked: set[int] = set()

    def shared() -> bool:
        revoked.update(first.poll(0.05).revoked)
        second.poll(0.05)
        return len(first.owned) == 2 and len(second.owned) == 2

    until(shared, "two members share")
    assert first.owned | second.owned == frozenset(range(4))
    assert revoked == second.owned
    second.close(10)
    poll_until(first, lambda: len(first.owned) == 4)
    first.close(10)


def test_no_revocation_can_be_served_inside_a_transaction(edge: Edge) -> None:
    """The second member asks for partitions; the first, inside a transaction, cannot let go."""
    topic = edge.topic("jobs")
    first, producer = edge.member(topic, 4), edge.producer()
    second = edge.ownership(topic)
    with first.fence() as fence:
        for _ in range(20):
            second.poll(0.1)  # two seconds: the group is rebalancing by now
        with pytest.raises(InvariantViolation, match="fence is open"):
            first.poll(0.1)
        assert second.owned == frozenset()
        assert first.owned == frozenset(range(4))
        outcome = producer.commit(fence, [], {(topic, 0): OffsetCommit(7)})
    assert isinstance(outcome, (Committed, Aborted))
    until(lambda: bool(first.poll(0.05).revoked) or bool(second.poll(0.05)), "revocation")
    first.close(10)
    second.close(10)
    producer.close(10)


def test_a_fence_of_the_last_generation_is_refused_by_the_broker(edge: Edge) -> None:
    topic = edge.topic("jobs")
    first, producer = edge.member(topic, 4), edge.producer()
    second = edge.ownership(topic)
    with first.fence() as fence:
        stale = fence.metadata

    def shared() -> bool:
        first.poll(0.05)
        second.poll(0.05)
        return len(first.owned) == len(second.owned) == 2

    until(shared, "two members share")
    with first.fence() as fence:
        fence.metadata = stale
        outcome = producer.commit(
            fence, [Outgoing(topic, 0, b"k", b"zombie")], {(topic, 0): OffsetCommit(9)}
        )
    assert isinstance(outcome, Aborted)
    assert outcome.fenced
    assert "ILLEGAL_GENERATION" in outcome.reason
    with first.fence() as fence:  # the producer goes on
        partition = min(first.owned)
        again = producer.commit(fence, [], {(topic, partition): OffsetCommit(1)})
    assert isinstance(again, Committed)
    for each in (first, second, producer):
        each.close(10)


def test_who_has_not_joined_has_no_fence(edge: Edge) -> None:
    topic = edge.topic("jobs")
    ownership = edge.ownership(topic)
    with pytest.raises(FencedError, match="not a member"), ownership.fence():
        pass
    ownership.close(10)


def test_a_static_member_carries_its_instance_id(edge: Edge) -> None:
    topic = edge.topic("jobs")
    config = OwnershipConfig(edge.bootstrap, edge.group, topic, instance_id="host-1")
    ownership = Ownership(config)
    poll_until(ownership, lambda: len(ownership.owned) == 4)
    with ownership.fence() as fence:
        assert fence.member.startswith("host-1-")
    ownership.close(10)
