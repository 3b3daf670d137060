"""Transactions against a real broker: committed, aborted, uncertain."""

import random
import time
from collections.abc import Iterator

import pytest

from scheduler.core.records import Dispatch, Outgoing
from scheduler.errors import InvariantViolation
from scheduler.kafka.ownership import Fence
from scheduler.kafka.reader import START
from scheduler.kafka.transaction import Aborted, Committed, OffsetCommit, Outcome, Uncertain
from scheduler.runtime.clock import SystemClock
from tests.integration.kafka.edge import Edge, read_until, until

pytestmark = pytest.mark.integration


def test_everything_of_a_transaction_arrives_in_order(edge: Edge) -> None:
    topic, runs = edge.topic("jobs"), edge.topic("runs", 2)
    ownership, producer = edge.member(topic, 4), edge.producer()
    before_ms = SystemClock().now_ms()
    with ownership.fence() as fence:
        outcome = producer.commit(
            fence,
            [
                Dispatch(runs, 0, [(b"a", b"1"), (b"b", b"2")]),
                Outgoing(runs, 1, b"c", None, (("why", b"test"),), observe=True),
                Dispatch(runs, 0, [(b"d", b"3")]),
            ],
            {(topic, 3): OffsetCommit(1)},
        )
    assert isinstance(outcome, Committed)
    assert outcome.appended_ms is not None
    assert before_ms - 2_000 <= outcome.appended_ms <= SystemClock().now_ms() + 2_000
    assert not outcome.replaced
    reader = edge.reader()
    reader.add({(runs, 0): START, (runs, 1): START})
    records = read_until(reader, lambda got: len(got) == 4)
    assert [(r.key, r.value) for r in records if r.partition == 0] == [
        (b"a", b"1"), (b"b", b"2"), (b"d", b"3"),
    ]  # fmt: skip
    (observed,) = (r for r in records if r.partition == 1)
    assert (observed.value, observed.headers) == (None, (("why", b"test"),))
    assert observed.appended_ms == outcome.appended_ms  # the broker's own time, not ours
    for each in (reader, ownership, producer):
        each.close(10)


def test_the_next_transaction_does_not_wait_for_a_whole_backoff(edge: Edge) -> None:
    topic, runs = edge.topic("jobs"), edge.topic("runs", 2)
    ownership, producer = edge.member(topic, 4), edge.producer()
    took = []
    for number in range(20):
        started = time.monotonic()
        with ownership.fence() as fence:
            outcome = producer.commit(
                fence, [Outgoing(runs, 0, b"k", b"v")], {(topic, 0): OffsetCommit(number)}
            )
        took.append(time.monotonic() - started)
        assert isinstance(outcome, Committed)
    assert sorted(took)[10] < 0.09  # the default backoff alone is 0.1 s
    ownership.close(10)
    producer.close(10)


@pytest.mark.parametrize("size", [10_000, 3_000_000], ids=["by the broker", "by the client"])
def test_a_record_refused_for_its_size_aborts_and_the_producer_goes_on(
    edge: Edge, size: int
) -> None:
    topic, runs = edge.topic("jobs"), edge.topic("runs", 2, max_message_bytes="1000")
    ownership, producer = edge.member(topic, 4), edge.producer()
    noise = random.Random(1).randbytes(size)  # nothing to compress

    def send(value: bytes) -> Outcome:
        with ownership.fence() as fence:
            return producer.commit(
                fence, [Outgoing(runs, 0, b"k", value)], {(topic, 0): OffsetCommit(5)}
            )

    refused = send(noise)
    assert isinstance(refused, Aborted)
    assert not refused.fenced
    assert "MSG_SIZE_TOO_LARGE" in refused.reason
    assert refused.refused
    # The refused record has left a hole in the sequence numbers, so one more may abort.
    assert any(isinstance(send(b"v"), Committed) for _ in range(2))
    for each in (ownership, producer):
        each.close(10)


def test_records_beyond_the_queue_wait_for_room(edge: Edge) -> None:
    topic, runs = edge.topic("jobs"), edge.topic("runs", 1)
    ownership = edge.member(topic, 4)
    producer = edge.producer(queue_records=1_000)
    numbers = [b"%d" % number for number in range(20_000)]
    with ownership.fence() as fence:
        outcome = producer.commit(
            fence,
            [Dispatch(runs, 0, [(b"k", value) for value in numbers])],
            {(topic, 0): OffsetCommit(5)},
        )
    assert isinstance(outcome, Committed)
    reader = edge.reader()
    reader.add({(runs, 0): START})
    records = read_until(reader, lambda got: len(got) >= len(numbers))
    assert [each.value for each in records] == numbers
    for each in (reader, ownership, producer):
        each.close(10)


def test_a_transaction_the_broker_timed_out_is_uncertain_and_the_next_one_commits(
    edge: Edge,
) -> None:
    topic, runs = edge.topic("jobs"), edge.topic("runs", 1)
    ownership = edge.member(topic, 4)
    producer = edge.producer(transaction_timeout_ms=1_000)

    def slow() -> Iterator[Outgoing]:
        yield Outgoing(runs, 0, b"k", b"before")
        producer._current().flush(10)
        watcher = edge.reader()
        edge.write(runs, 0, [b"plain"])
        watcher.add({(runs, 0): START})
        # Readable only when the broker has aborted the transaction before it.
        read_until(watcher, lambda got: any(r.value == b"plain" for r in got))
        watcher.close(10)
        yield Outgoing(runs, 0, b"k", b"after")

    with ownership.fence() as fence:
        outcome = producer.commit(fence, slow(), {(topic, 0): OffsetCommit(5)})
    assert isinstance(outcome, Uncertain)
    ownership.poll(0)
    with ownership.fence() as fence:
        again = producer.commit(
            fence, [Outgoing(runs, 0, b"k", b"good")], {(topic, 0): OffsetCommit(6)}
        )
    assert isinstance(again, Committed)
    reader = edge.reader()
    reader.add({(runs, 0): START})
    records = read_until(reader, lambda got: any(r.value == b"good" for r in got))
    assert [r.value for r in records] == [b"plain", b"good"]
    for each in (reader, ownership, producer):
        each.close(10)


def test_a_second_process_with_the_same_id_fences_the_first(edge: Edge) -> None:
    topic, runs = edge.topic("jobs"), edge.topic("runs", 1)
    ownership, first = edge.member(topic, 4), edge.producer("same")
    second = edge.producer("same")
    with ownership.fence() as fence:
        outcome = first.commit(
            fence, [Outgoing(runs, 0, b"k", b"v")], {(topic, 0): OffsetCommit(1)}
        )
    assert isinstance(outcome, Uncertain)
    for each in (ownership, first, second):
        each.close(10)


def test_topics_are_known_once_they_exist(edge: Edge) -> None:
    producer = edge.producer()
    name = edge.prefix + "later"
    assert not producer.knows(name)
    edge.topic("later", 1)
    until(lambda: producer.knows(name), "the new topic")
    producer.close(10)


def test_a_commit_needs_an_open_fence_and_an_offset(edge: Edge) -> None:
    producer = edge.producer()
    closed = Fence(b"", 1, "m", is_open=False)
    with pytest.raises(InvariantViolation, match="open fence"):
        producer.commit(closed, [], {("t", 0): OffsetCommit(1)})
    with pytest.raises(InvariantViolation, match="no valid offset"):
        producer.commit(Fence(b"", 1, "m"), [], {("t", 0): OffsetCommit(-1001)})
    producer.close(10)
