"""Messages of Kafka targets, and what is no target."""

from typing import Any

from executor.core.outcome import Failed
from executor.core.state import OpenRun
from executor.core.table import Phase
from executor.targets.directory import Directory
from executor.targets.kafka import MESSAGE_BYTES_MAX, KafkaTarget
from executor.targets.topics import ABSENT_MS, TopicCounts
from scheduler.contract.partition import partition_of
from scheduler.core.records import Outgoing
from tests.unit.executor.building import HTTP, command


def run(payload: object = 1, **target: Any) -> OpenRun:
    described = {"kind": "kafka", "topic": "orders"} | target
    return OpenRun(command(target=described, payload=payload), Phase.RUNNING, 2, 0, 5, "job/x", ())


def message(one: OpenRun) -> Outgoing | Failed:
    counts = {"orders": 7, "jobs": 1}
    return KafkaTarget(counts.get, {"jobs"}.__contains__, partition_of).message(one)


def test_message_carries_payload_key_and_identity() -> None:
    made = message(run({"a": "ü"}, key="98213", headers={"x": "y"}))
    assert isinstance(made, Outgoing)
    assert (made.key, made.value) == (b"98213", '{"a":"ü"}'.encode())
    assert made.partition == partition_of(b"98213", 7)
    headers = dict(made.headers)
    wanted = {"x": b"y", "X-Attempt": b"2", "Idempotency-Key": b"job/x"}
    assert wanted.items() <= headers.items()


def test_without_a_key_the_job_keeps_its_order() -> None:
    made = message(run())
    assert isinstance(made, Outgoing)
    assert made.key == b"job"


def test_own_topics_are_no_target() -> None:
    made = message(run(topic="jobs"))
    assert made == Failed("topic jobs is Duewheel's own, never a target", retryable=False)


def test_absent_topic_may_come() -> None:
    assert message(run(topic="later")) == Failed("topic later does not exist or is not open to us")


def test_message_that_would_abort_everybody_is_refused() -> None:
    made = message(run("x" * MESSAGE_BYTES_MAX))
    assert isinstance(made, Failed)
    assert not made.retryable


def test_directory_knows_what_it_serves() -> None:
    topics = TopicCounts({"orders": 1}.get, lambda: 0)
    directory = Directory(KafkaTarget(topics, lambda _: False, partition_of), topics, ["http"])
    assert isinstance(directory.deliver(run()), Outgoing)
    http = OpenRun(command(target=HTTP), Phase.RUNNING, 1, 0, 5, "k", ())
    assert directory.deliver(http) is None
    external = OpenRun(command(target={"kind": "external"}), Phase.RUNNING, 1, 0, 5, "k", ())
    unsupported = "targets of kind external are not supported by this executor"
    assert directory.deliver(external) == Failed(unsupported, retryable=False)
    directory.refuse(http.run_id, "too large for its topic")
    assert directory.deliver(http) == Failed("too large for its topic", retryable=False)


def test_counts_are_asked_once_absence_again_and_all_after_doubt() -> None:
    cluster: dict[str, int] = {"orders": 3}
    asked: list[str] = []
    now = [0]

    def lookup(topic: str) -> int | None:
        asked.append(topic)
        return cluster.get(topic)

    topics = TopicCounts(lookup, lambda: now[0])
    assert [topics(name) for name in ("orders", "orders", "late", "late")] == [3, 3, None, None]
    assert asked == ["orders", "late"]
    cluster["late"], now[0] = 5, ABSENT_MS
    assert topics("late") == 5
    topics.forget()
    cluster.clear()
    assert topics("orders") is None
