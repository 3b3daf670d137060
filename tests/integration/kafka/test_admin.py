"""Topics planned, applied and checked against a real broker."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from scheduler.contract.topics import TopicCatalog, load_catalog
from scheduler.errors import ConfigError, RetryableError
from scheduler.kafka.admin import KafkaAdmin, apply, check, plan
from scheduler.kafka.topic_difference import Severity
from tests.conftest import Kafka

pytestmark = pytest.mark.integration

FEW = {
    "jobs": 4,
    "job-commands": 4,
    "job-status": 2,
    "runs": 2,
    "run-reports": 2,
    "run-state": 2,
    "runs-retry": 4,
    "runs-dead-letter": 2,
    "run-history": 2,
    "cursors": 2,
}


@pytest.fixture
def admin(kafka: Kafka) -> KafkaAdmin:
    return KafkaAdmin({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def few(prefix: str) -> TopicCatalog:
    return load_catalog(prefix).with_partitions(FEW)


def test_a_new_cluster_misses_every_topic_and_apply_creates_them(
    few: TopicCatalog, admin: KafkaAdmin
) -> None:
    missing = plan(few, admin)
    assert {each.topic for each in missing} == {spec.name for spec in few}
    assert {each.severity for each in missing} == {Severity.MISSING}
    with pytest.raises(ConfigError, match="run: duewheel topics apply"):
        check(few, admin)

    assert apply(few, admin) == missing

    assert check(few, admin) == []
    identities = admin.topic_identities(spec.name for spec in few)
    assert {name: each.partitions for name, each in identities.items()} == {
        spec.name: spec.partitions for spec in few
    }


def test_apply_twice_changes_nothing(few: TopicCatalog, admin: KafkaAdmin) -> None:
    apply(few, admin)
    assert apply(few, admin) == []


def test_a_setting_that_breaks_the_guarantees_is_found_and_mended(
    few: TopicCatalog, admin: KafkaAdmin
) -> None:
    apply(few, admin)
    jobs = few.name("jobs")
    admin.alter(jobs, {"cleanup.policy": "delete", "segment.ms": "3600000"})

    with pytest.raises(ConfigError, match="cleanup.policy is delete, must be compact") as refusal:
        check(few, admin)
    assert "segment.ms" not in str(refusal.value)

    mended = apply(few, admin)
    assert {(each.topic, each.setting) for each in mended} == {
        (jobs, "cleanup.policy"),
        (jobs, "segment.ms"),
    }
    assert check(few, admin) == []


def test_what_is_merely_advised_does_not_stop_a_service(
    few: TopicCatalog, admin: KafkaAdmin
) -> None:
    apply(few, admin)
    admin.alter(few.name("runs"), {"segment.ms": "3600000"})
    (only,) = check(few, admin)
    assert (only.severity, only.setting) == (Severity.ADVISORY, "segment.ms")


def test_a_wrong_partition_count_is_refused_and_never_changed(
    few: TopicCatalog, admin: KafkaAdmin, kafka: Kafka
) -> None:
    jobs = few.name("jobs")
    outside = AdminClient({"bootstrap.servers": kafka.bootstrap})
    outside.create_topics([NewTopic(jobs, num_partitions=3)])[jobs].result(timeout=30)

    with pytest.raises(ConfigError, match="partitions is 3, must be 4"):
        apply(few, admin)
    with pytest.raises(ConfigError, match="DUEWHEEL_TOPIC_PREFIX"):
        check(few, admin)
    assert admin.topic_identities([jobs])[jobs].partitions == 3


def test_a_topic_created_again_has_another_id(
    few: TopicCatalog, admin: KafkaAdmin, kafka: Kafka
) -> None:
    apply(few, admin)
    name = few.name("cursors")
    before = admin.topic_identities([name])[name]
    outside = AdminClient({"bootstrap.servers": kafka.bootstrap})
    outside.delete_topics([name], operation_timeout=30)[name].result(timeout=30)
    apply(few, admin)
    after = admin.topic_identities([name])[name]
    assert after.partitions == before.partitions
    assert after.topic_id != before.topic_id


def test_log_ends_count_an_open_transaction_only_when_asked_for_everything(
    few: TopicCatalog, admin: KafkaAdmin, kafka: Kafka
) -> None:
    apply(few, admin)
    topic = few.name("runs")
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": few.prefix + "ends"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=1)
    producer.flush(30)
    assert admin.log_ends(topic, [0, 1]) == {0: 0, 1: 1}
    assert admin.log_ends(topic, [0, 1], committed=True) == {0: 0, 1: 0}
    producer.abort_transaction(30)


def test_a_cluster_has_one_id(admin: KafkaAdmin, kafka: Kafka) -> None:
    other = KafkaAdmin({"bootstrap.servers": kafka.bootstrap})
    assert admin.cluster_id() == other.cluster_id() != ""


def test_no_broker_is_an_error_that_may_pass() -> None:
    nobody = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, request_s=1.0)
    with pytest.raises(RetryableError, match="the cluster does not answer"):
        nobody.cluster_id()
