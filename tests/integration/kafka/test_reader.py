"""Reading from explicit positions, against a real broker."""

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from scheduler.core.records import Incoming
from scheduler.kafka.reader import START
from tests.integration.kafka.edge import Edge, read_until, until

pytestmark = pytest.mark.integration


def values(records: list[Incoming]) -> list[bytes | None]:
    return [each.value for each in records]


def test_reads_from_the_start_and_from_a_position(edge: Edge) -> None:
    topic = edge.topic("log")
    edge.write(topic, 0, [b"a", b"b", b"c"])
    edge.write(topic, 1, [b"d", b"e"])
    reader = edge.reader()
    reader.add({(topic, 0): START, (topic, 1): 1})
    records = read_until(reader, lambda got: len(got) >= 4)
    assert sorted((r.partition, r.offset, r.key, r.value) for r in records) == [
        (0, 0, b"ka", b"a"),
        (0, 1, b"kb", b"b"),
        (0, 2, b"kc", b"c"),
        (1, 1, b"ke", b"e"),
    ]
    assert all(r.headers == () and r.appended_ms > 1_700_000_000_000 for r in records)
    reader.close(10)


def test_headers_keys_and_tombstones_come_as_bytes(edge: Edge) -> None:
    topic = edge.topic("log")
    producer = Producer({"bootstrap.servers": edge.bootstrap})
    producer.produce(topic, None, b"\xff", 0, headers=[("h", b"1"), ("h", None)])
    producer.produce(topic, b"", None, 0)
    assert producer.flush(30) == 0
    reader = edge.reader()
    reader.add({(topic, 0): START})
    first, second = read_until(reader, lambda got: len(got) == 2)
    assert (first.key, first.value, first.headers) == (b"\xff", None, (("h", b"1"), ("h", b"")))
    assert (second.key, second.value, second.headers) == (None, b"", ())
    reader.close(10)


def test_the_end_lies_behind_aborted_records_and_markers(edge: Edge) -> None:
    topic = edge.topic("log")
    producer = edge.plain_transactional("user")
    producer.begin_transaction()
    producer.produce(topic, b"never", b"k", 0)
    producer.flush(30)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"seen", b"k", 0)
    producer.commit_transaction(30)
    reader = edge.reader()
    reader.add({(topic, 0): START, (topic, 1): START})
    records = read_until(reader, lambda _: reader.end(topic, 0) == 4)
    assert values(records) == [b"seen"]  # 0 aborted, 1 marker, 2 seen, 3 marker
    until(lambda: not reader.poll(10, 0.1).records and reader.end(topic, 1) == 0, "empty end")
    reader.close(10)


def test_the_end_waits_behind_an_open_transaction_and_then_moves_on(edge: Edge) -> None:
    topic = edge.topic("log")
    edge.write(topic, 0, [b"a"])
    producer = edge.plain_transactional("user")
    producer.begin_transaction()
    producer.produce(topic, b"open", b"k", 0)
    producer.flush(30)
    edge.write(topic, 0, [b"behind"])
    reader = edge.reader()
    reader.add({(topic, 0): START})
    assert values(read_until(reader, lambda _: reader.end(topic, 0) == 1)) == [b"a"]
    producer.abort_transaction(30)
    assert values(read_until(reader, lambda _: reader.end(topic, 0) == 4)) == [b"behind"]
    reader.close(10)


def test_a_transaction_of_markers_only_moves_the_end(edge: Edge) -> None:
    """The last record of a log is a marker: nothing readable comes, the end is met again."""
    topic = edge.topic("log")
    reader = edge.reader()
    reader.add({(topic, 0): START})
    read_until(reader, lambda _: reader.end(topic, 0) == 0)
    producer = edge.plain_transactional("user")
    producer.begin_transaction()
    producer.produce(topic, b"never", b"k", 0)
    producer.flush(30)
    producer.abort_transaction(30)
    assert read_until(reader, lambda _: reader.end(topic, 0) == 2) == []
    reader.close(10)


def test_a_position_outside_the_log_is_lost_until_placed_anew(edge: Edge) -> None:
    topic = edge.topic("log")
    edge.write(topic, 0, [b"a", b"b", b"c"])
    edge.write(topic, 1, [b"d"])
    admin = AdminClient({"bootstrap.servers": edge.bootstrap})
    cut = TopicPartition(topic, 0, 2)
    admin.delete_records([cut])[cut].result(timeout=30)
    reader = edge.reader()
    reader.add({(topic, 0): 1, (topic, 1): 5})
    lost: set[tuple[str, int]] = set()

    def both_lost() -> bool:
        batch = reader.poll(100, 0.1)
        assert batch.records == []
        lost.update(batch.lost)
        return len(lost) == 2

    until(both_lost, "lost partitions")
    reader.seek(topic, 0, START)
    assert values(read_until(reader, lambda got: len(got) == 1)) == [b"c"]
    reader.close(10)


def test_what_is_removed_comes_no_more_and_can_be_added_again(edge: Edge) -> None:
    topic = edge.topic("log")
    edge.write(topic, 0, [b"a"])
    reader = edge.reader()
    reader.add({(topic, 0): START, (topic, 1): START})
    read_until(reader, lambda got: len(got) == 1)
    reader.remove([(topic, 0), (topic, 3)])
    edge.write(topic, 0, [b"b"])
    edge.write(topic, 1, [b"c"])
    assert values(read_until(reader, lambda got: len(got) >= 1)) == [b"c"]
    reader.add({(topic, 0): 1})
    assert values(read_until(reader, lambda got: len(got) >= 1)) == [b"b"]
    reader.close(10)


def test_compacted_holes_are_stepped_over(edge: Edge) -> None:
    """Compaction leaves the newest record of a key; the end lies behind the holes."""
    topic = edge.topic(
        "log",
        1,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )
    producer = Producer({"bootstrap.servers": edge.bootstrap})

    def write(value: bytes) -> None:
        producer.produce(topic, value, b"key", 0)
        assert producer.flush(30) == 0

    for number in range(5):
        write(b"%d" % number)

    def compacted() -> bool:
        write(b"again")  # rolls the segment, so that the cleaner may have the older ones
        fresh = edge.reader()
        fresh.add({(topic, 0): START})
        records = read_until(fresh, lambda _: fresh.end(topic, 0) is not None)
        end = fresh.end(topic, 0)
        fresh.close(10)
        return end is not None and len(records) < end

    until(compacted, "compaction", 60)
