"""What counts as a difference, and what it puts at stake."""

from collections.abc import Mapping

import pytest

from scheduler.contract.topics import load_catalog
from scheduler.kafka.topic_difference import Severity, TopicDifference, TopicState, compare

JOBS = load_catalog().spec("jobs")


def differences(
    settings: Mapping[str, str] | None = None, partitions: int = JOBS.partitions
) -> list[TopicDifference]:
    found = {**JOBS.settings, **(settings or {})}
    return compare([JOBS], {"jobs": TopicState(partitions, found)})


def test_a_topic_as_wanted_has_no_difference() -> None:
    assert differences() == []


def test_a_missing_topic_names_the_command_that_creates_it() -> None:
    (only,) = compare([JOBS], {})
    assert only.severity is Severity.MISSING
    assert str(only) == "jobs: missing (256 partitions); run: duewheel topics apply"


def test_another_partition_count_breaks_the_guarantees_and_has_no_easy_remedy() -> None:
    (only,) = differences(partitions=12)
    assert (only.severity, only.setting) == (Severity.BREAKING, "partitions")
    assert (only.found, only.wanted) == ("12", "256")
    assert "DUEWHEEL_TOPIC_PREFIX" in only.remedy


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", "compact,delete"),
        ("message.timestamp.type", "CreateTime"),
        ("min.compaction.lag.ms", "0"),
        ("delete.retention.ms", "86400000"),
        ("max.message.bytes", "1048588"),
        ("unclean.leader.election.enable", "true"),
    ],
)
def test_these_settings_break_the_guarantees(setting: str, found: str) -> None:
    (only,) = differences({setting: found})
    assert only.severity is Severity.BREAKING
    assert only.found == found
    assert only.remedy == "run: duewheel topics apply"


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("min.compaction.lag.ms", "999999999999"),
        ("delete.retention.ms", "999999999999"),
        ("max.message.bytes", "10485760"),
    ],
)
def test_keeping_more_than_asked_for_is_fine(setting: str, found: str) -> None:
    assert differences({setting: found}) == []


def test_unlimited_retention_is_enough() -> None:
    runs = load_catalog().spec("runs")
    state = TopicState(runs.partitions, {**runs.settings, "retention.ms": "-1"})
    assert compare([runs], {"runs": state}) == []


def test_a_setting_for_speed_is_only_advised() -> None:
    (only,) = differences({"segment.ms": "604800000"})
    assert only.severity is Severity.ADVISORY


def test_numbers_are_compared_as_numbers() -> None:
    state = load_catalog().spec("run-state")
    found = TopicState(state.partitions, {**state.settings, "min.cleanable.dirty.ratio": "0.10"})
    assert compare([state], {"run-state": found}) == []
