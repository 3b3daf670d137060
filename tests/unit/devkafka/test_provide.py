"""Which Kafka is taken, and that the two ways to start one agree."""

from pathlib import Path

import pytest

from devkafka import jars, running
from devkafka.cluster import broker_properties, free_ports, is_free
from devkafka.docker import IMAGE, environment
from devkafka.provide import choose

PORTS = [(20_001, 20_011), (20_002, 20_012), (20_003, 20_013)]


def test_a_configured_cluster_comes_before_everything_else() -> None:
    assert choose({"KAFKA_BOOTSTRAP_SERVERS": "broker:9092"}) == "configured"


def test_with_nothing_at_hand_one_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(jars.KafkaUnavailable) as refusal:
        choose({})
    for way_out in ("KAFKA_BOOTSTRAP_SERVERS", "Docker", "Java 17", "Maven"):
        assert way_out in str(refusal.value)


def test_an_older_java_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert jars.java() is None
    old.write_text("#!/bin/sh\necho 'openjdk version \"17.0.2\"' >&2\n")
    assert jars.java() == str(old)


def test_the_container_runs_the_version_the_jars_have() -> None:
    assert IMAGE.rpartition(":")[2] == jars.kafka_version()


def test_the_container_has_the_settings_of_the_jars_broker() -> None:
    container = {
        name.removeprefix("KAFKA_").replace("_", ".").lower(): value
        for name, value in environment(20_001).items()
    }
    broker = broker_properties(1, PORTS[:1], Path("data"))
    of_the_place = {"controller.quorum.voters", "listeners"}
    differing = {
        name: (value, broker.get(name))
        for name, value in container.items()
        if name not in of_the_place and broker.get(name) != value
    }
    assert differing == {}


def test_three_brokers_keep_three_copies_and_two_in_sync() -> None:
    second = broker_properties(2, PORTS, Path("data"))
    assert second["node.id"] == "2"
    assert second["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20002"
    assert second["default.replication.factor"] == "3"
    assert second["min.insync.replicas"] == "2"
    assert second["transaction.state.log.min.isr"] == "2"
    voters = "1@127.0.0.1:20011,2@127.0.0.1:20012,3@127.0.0.1:20013"
    assert second["controller.quorum.voters"] == voters


def test_chosen_ports_are_free_distinct_and_below_the_outgoing_ones() -> None:
    ports = free_ports(6)
    assert len(set(ports)) == 6
    assert all(is_free(port) and port < 32_768 for port in ports)


def test_where_nothing_was_started_nothing_runs(tmp_path: Path) -> None:
    assert running.bootstrap(tmp_path) is None
    assert running.stop(tmp_path) == 0


def test_another_process_with_a_brokers_old_id_is_left_alone(tmp_path: Path) -> None:
    broker = tmp_path / "broker-1"
    broker.mkdir()
    (broker / "pid").write_text("1")
    (tmp_path / "cluster.json").write_text('{"ports": [[20001, 20011]]}')
    assert running.bootstrap(tmp_path) is None
    assert running.stop(tmp_path) == 0
