"""Kafka's own console tools, as tests and the README use them."""

import pytest

from devkafka import console
from devkafka.jars import KafkaUnavailable, java
from tests.conftest import ROOT, Kafka

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(java() is None, reason="Java 17 is needed to run Kafka's tools"),
]


def test_what_the_console_producer_writes_the_console_consumer_reads(
    kafka: Kafka, prefix: str
) -> None:
    topic = kafka.topics(prefix).name("calendars")
    written: list[tuple[str, str | None]] = [("a", '{"dates": ["2026-12-25"]}'), ("b", None)]
    console.produce(ROOT, kafka.bootstrap, topic, written)
    read = console.consume(ROOT, kafka.bootstrap, topic, len(written))
    assert read == ['a\t{"dates": ["2026-12-25"]}', "b\tnull"]


def test_a_topic_that_does_not_exist_is_an_error(kafka: Kafka, prefix: str) -> None:
    with pytest.raises(KafkaUnavailable, match="not present in metadata"):
        console.produce(ROOT, kafka.bootstrap, f"{prefix}nowhere", [("a", "b")])
