"""The topic catalog: names, prefix, queues, and what a wrong topics.yaml is told."""

from pathlib import Path

import pytest

from scheduler.contract.topics import load_catalog
from scheduler.errors import ConfigError

MINIMAL = """
version: 1
topics:
  - {name: jobs, key: job_id, partitions: 8, writers: [], readers: [], purpose: x}
  - {name: runs, key: job_id, partitions: 4, per_queue: true, writers: [], readers: [], purpose: x}
"""


def written(folder: Path, text: str) -> Path:
    place = folder / "topics.yaml"
    place.write_text(text)
    return place


def test_the_contract_has_these_topics_and_partition_counts() -> None:
    assert {spec.base: spec.partitions for spec in load_catalog()} == {
        "jobs": 256,
        "job-commands": 256,
        "job-status": 64,
        "calendars": 1,
        "runs": 64,
        "run-reports": 64,
        "run-state": 64,
        "runs-retry": 256,
        "runs-dead-letter": 64,
        "run-history": 64,
        "cursors": 16,
    }


def test_definitions_survive_twice_the_outage_that_is_promised_harmless() -> None:
    jobs = load_catalog().spec("jobs")
    assert jobs.required["cleanup.policy"] == "compact"
    assert jobs.required["message.timestamp.type"] == "LogAppendTime"
    assert int(jobs.required["min.compaction.lag.ms"]) == 2 * 24 * 3600 * 1000
    assert int(jobs.required["delete.retention.ms"]) == 7 * 24 * 3600 * 1000


def test_whoever_reads_append_times_gets_them_from_the_broker() -> None:
    catalog = load_catalog()
    for base in ("jobs", "job-commands", "calendars", "runs-retry", "cursors"):
        assert catalog.spec(base).required["message.timestamp.type"] == "LogAppendTime"


def test_prefix_goes_before_topics_groups_and_transactional_ids() -> None:
    catalog = load_catalog("staging.")
    assert catalog.name("jobs") == "staging.jobs"
    assert catalog.scheduler_group() == "staging.scheduler"
    assert catalog.executor_group() == "staging.executor"
    assert catalog.scheduler_transactional_id("a") == "staging.scheduler-a"
    assert catalog.executor_transactional_id("a") == "staging.executor-a"


def test_a_queue_has_run_topics_of_its_own_and_shares_the_others(tmp_path: Path) -> None:
    catalog = load_catalog(path=written(tmp_path, MINIMAL + "queues: [slow]\n"))
    assert catalog.queues == ("default", "slow")
    assert catalog.name("runs", "slow") == "runs.slow"
    assert catalog.name("jobs", "slow") == "jobs"
    assert catalog.executor_group("slow") == "executor.slow"
    assert [spec.name for spec in catalog] == ["jobs", "runs", "runs.slow"]


def test_an_undeclared_queue_is_refused_with_the_place_to_declare_it() -> None:
    with pytest.raises(ConfigError, match="queue 'slow' is not declared in topics.yaml"):
        load_catalog().name("runs", "slow")


def test_an_unknown_topic_is_refused() -> None:
    with pytest.raises(ConfigError, match="no topic 'rums'"):
        load_catalog().name("rums")


def test_own_topics_are_known_by_their_full_name() -> None:
    catalog = load_catalog("p.")
    assert catalog.owns("p.runs")
    assert not catalog.owns("runs")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (MINIMAL.replace("partitions: 8", "partitions: 0"), "topics.0.partitions"),
        (MINIMAL.replace("key: job_id, partitions: 8", "partitions: 8"), "topics.0.key"),
        (MINIMAL.replace("purpose: x}", "purpose: x, retnetion: 3}", 1), "topics.0.retnetion"),
        (MINIMAL.replace("version: 1", "version: 2"), "version"),
        (MINIMAL.replace("partitions: 8", "partitions: 6"), "4 does not divide 6"),
        (MINIMAL.replace("name: runs", "name: jobs"), "topic 'jobs' stands there twice"),
        (MINIMAL + "queues: ['a b']\n", "'runs.a b' cannot be a topic"),
        (MINIMAL + "queues: [\n", "is not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_catalog(path=written(tmp_path, text))
    assert complaint in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere\.yaml"):
        load_catalog(path=tmp_path / "nowhere.yaml")


def test_tests_may_do_with_fewer_partitions_as_long_as_they_nest() -> None:
    catalog = load_catalog().with_partitions({"jobs": 16, "runs": 4})
    assert (catalog.partitions("jobs"), catalog.partitions("runs")) == (16, 4)
    assert catalog.partitions("runs-retry") == 256
    with pytest.raises(ConfigError, match="must divide each other"):
        load_catalog().with_partitions({"runs": 3})
