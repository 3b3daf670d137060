"""How topics in a cluster differ from topics.yaml, and what each difference puts at stake; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.contract.topics import TopicSpec

PARTITIONS = "partitions"
"""Stands for the partition count where a difference names a setting."""

_APPLY = "run: duewheel topics apply"
_UNLIMITED = "-1"


class Severity(StrEnum):
    """What a difference between a topic and topics.yaml puts at stake."""

    MISSING = "missing"
    """The topic does not exist."""
    BREAKING = "breaking"
    """A guarantee does not hold; services do not start."""
    ADVISORY = "advisory"
    """Size or speed suffers; services start."""


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """One way in which the cluster is not as topics.yaml says.

    Attributes:
        topic: full name.
        severity: what is at stake.
        setting: ``partitions``, a topic setting, or empty for a missing topic.
        wanted, found: both as words; ``found`` is empty for a missing topic.
        remedy: the command that mends it, or what to do where none can.
    """

    topic: str
    severity: Severity
    setting: str
    wanted: str
    found: str
    remedy: str

    def __str__(self) -> str:
        """One line for people."""
        if self.severity is Severity.MISSING:
            return f"{self.topic}: missing ({self.wanted} partitions); {self.remedy}"
        return (
            f"{self.topic}: {self.severity}: {self.setting} is {self.found}, "
            f"must be {self.wanted}; {self.remedy}"
        )


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the cluster has it."""

    partitions: int
    settings: Mapping[str, str]


def compare(
    catalog: Iterable[TopicSpec], states: Mapping[str, TopicState]
) -> list[TopicDifference]:
    """Return every difference between topics as they should be and as they are; pure."""
    differences: list[TopicDifference] = []
    for spec in catalog:
        state = states.get(spec.name)
        if state is None:
            differences.append(_missing(spec))
        else:
            differences += _partition_difference(spec, state)
            differences += _setting_differences(spec, state)
    return differences


def _missing(spec: TopicSpec) -> TopicDifference:
    return TopicDifference(spec.name, Severity.MISSING, "", str(spec.partitions), "", _APPLY)


def _partition_difference(spec: TopicSpec, state: TopicState) -> list[TopicDifference]:
    if state.partitions == spec.partitions:
        return []
    remedy = (
        "a count cannot be changed in place: use another DUEWHEEL_TOPIC_PREFIX, or delete the "
        f"topic with everything in it and {_APPLY}"
    )
    wanted, found = str(spec.partitions), str(state.partitions)
    return [
        TopicDifference(spec.name, Severity.BREAKING, PARTITIONS, wanted, found, remedy),
    ]


def _setting_differences(spec: TopicSpec, state: TopicState) -> list[TopicDifference]:
    classed = [(Severity.BREAKING, spec.required), (Severity.ADVISORY, spec.advised)]
    return [
        TopicDifference(spec.name, severity, setting, wanted, found, _APPLY)
        for severity, settings in classed
        for setting, wanted in settings.items()
        if not _satisfies(setting, wanted, found := state.settings.get(setting, ""))
    ]


def _satisfies(setting: str, wanted: str, found: str) -> bool:
    """Words must be equal; numbers that keep data must be at least as large."""
    if found == wanted:
        return True
    keeps_data = setting.endswith(("retention.ms", "lag.ms")) or setting == "max.message.bytes"
    if not keeps_data:
        return _same_number(wanted, found)
    if found == _UNLIMITED:
        return True
    try:
        return int(found) >= int(wanted)
    except ValueError:
        return False


def _same_number(wanted: str, found: str) -> bool:
    try:
        return float(wanted) == float(found)
    except ValueError:
        return False
