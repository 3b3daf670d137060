"""The development cluster: taken away and brought back, on the same port with the same data.

Chaos tests rest on this, so it is tested for itself. It needs Kafka's jars: a configured cluster
or one in Docker cannot be killed from here.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from devkafka import running
from devkafka.cluster import Cluster, create
from devkafka.jars import KafkaUnavailable, java
from devkafka.provide import jar_cache
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(java() is None, reason="Java 17 is needed to start brokers"),
]

WAIT_S = 30.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = create(tmp_path / "kafka", jar_cache(ROOT))
    cluster.start()
    yield cluster
    cluster.kill()


def test_a_killed_broker_comes_back_on_its_port_with_its_data(cluster: Cluster) -> None:
    (broker,) = cluster.brokers
    bootstrap, pid = cluster.bootstrap, broker.pid
    write(bootstrap, "kept", b"before")

    broker.kill()
    assert not broker.alive
    broker.restart()

    assert cluster.bootstrap == bootstrap
    assert broker.pid not in (None, pid)
    assert read(bootstrap, "kept") == b"before"


def test_a_stopped_cluster_is_not_running_any_more(cluster: Cluster) -> None:
    assert running.bootstrap(cluster.folder) == cluster.bootstrap
    cluster.stop()
    assert running.bootstrap(cluster.folder) is None
    assert not any(broker.alive for broker in cluster.brokers)


def test_a_cluster_can_be_stopped_by_another_process(cluster: Cluster) -> None:
    (broker,) = cluster.brokers
    # A child that has ended stays a zombie until its parent, this process, has waited for it.
    assert running.stop(cluster.folder, deadline_s=0.0) == 1
    broker.kill()
    assert running.stop(cluster.folder) == 0


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    broken = create(tmp_path / "broken", jar_cache(ROOT))
    (broken.brokers[0].folder / "data" / "meta.properties").unlink()
    with pytest.raises(KafkaUnavailable, match=r"broker 1 ended at start:[\s\S]*meta.properties"):
        broken.start()


def test_a_setting_kafka_does_not_accept_is_named(tmp_path: Path) -> None:
    with pytest.raises(KafkaUnavailable, match=r"log\.segment\.bytes"):
        create(tmp_path / "bad", jar_cache(ROOT), settings={"log.segment.bytes": "none"})


def write(bootstrap: str, topic: str, value: bytes) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(timeout=WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def read(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(WAIT_S)
    consumer.close()
    return None if message is None else message.value()
