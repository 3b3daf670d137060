"""Bad input on a real worker: refused with a reason, the partition goes on, nothing is lost.

Each case first puts a good job into the same partition, then the bad record, then a second
good one: both must fire, and the bad one must be answered in job-status.
"""

import pytest

from scheduler.contract.partition import partition_of
from tests.integration.scheduler.line import Row, User

EVERY = {"every": "PT1S"}


def neighbour(name: str, partition: int) -> bytes:
    """A job id of its own that lies in the given partition."""
    return next(
        key
        for number in range(100_000)
        if partition_of(key := f"{name}-{number}".encode(), 256) == partition
    )


CASES: list[tuple[str, bytes, bytes | Row, str]] = [
    ("not-json", b"bad-not-json", b"{nope", "JSON"),
    ("not-utf8", b"bad-not-utf8", b'{"every":"\xff\xfe"}', "UTF-8"),
    ("unknown-field", b"bad-unknown-field", {"every": "PT5S", "targt": {}}, "target"),
    ("impossible-cron", b"bad-cron", {"schedule": "0 0 30 2 *"}, "no date of the calendar"),
    ("no-schedule", b"bad-nothing", {}, "schedule"),
    ("two-schedules", b"bad-two", {"every": "PT1S", "schedule": "* * * * *"}, "one of"),
    ("payload-1-mb", b"bad-large", {**EVERY, "payload": "x" * 1_000_000}, "bytes"),
    ("empty-key", b"", EVERY, "job id"),
    ("control-characters", b"bad\x00\x07id", EVERY, "job id"),
    ("not-ascii", "bad-größe".encode(), EVERY, "job id"),
    ("key-differs", b"bad-key-differs", {**EVERY, "job_id": "other"}, "other"),
    ("calendars", b"bad-exclude", {**EVERY, "exclude": ["holidays"]}, "calendar"),
    ("year-0", b"bad-year-0", {"run_at": "0000-01-01T00:00:00Z"}, "run_at"),
]


@pytest.mark.parametrize(("name", "key", "value", "reason"), CASES, ids=[c[0] for c in CASES])
def test_refused_with_a_reason_and_the_partition_goes_on(
    user: User, name: str, key: bytes, value: bytes | Row, reason: str
) -> None:
    partition = partition_of(key, 256)
    before, after = neighbour(f"before-{name}", partition), neighbour(f"after-{name}", partition)
    user.produce(before, EVERY)
    _, offset = user.produce(key, value)
    user.produce(after, EVERY)
    answer = user.status(key, "rejected")
    assert reason.lower() in (str(answer["path"]) + str(answer["error"])).lower()
    assert f"[{partition}]@{offset}" in answer["error"]
    assert answer["definition_offset"] == offset
    for good in (before, after):
        user.status(good, "active")
        user.find("runs", good, lambda row: row["kind"] == "run")
    assert not list(user.runs(key))


def test_a_refused_definition_leaves_the_last_good_one_in_force(user: User) -> None:
    key = b"good-then-bad"
    _, good = user.produce(key, EVERY)
    user.status(key, "active")
    user.produce(key, {"schedule": "61 * * * *"})
    refused = user.status(key, "rejected")
    later = user.find("runs", key, lambda row: row["run_at"] > refused["observed_at"])
    assert later["definition_offset"] == good
    assert user.guarded(key, "kept")["source"] == good


def test_a_record_in_a_wrong_partition_is_moved_and_runs_once(user: User) -> None:
    key = b"misplaced"
    wrong = (partition_of(key, 256) + 1) % 256
    user.produce(key, EVERY, partition=wrong)
    answer = user.status(key, "active")
    assert any("partition" in warning for warning in answer["warnings"])
    third = user.find("runs", key, lambda row: len(list(user.runs(key))) >= 3)
    assert third["job_id"] == "misplaced"
    instants = [row["scheduled_at"] for row in user.runs(key)]
    assert len(instants) == len(set(instants))
    user.produce(key, None, partition=wrong)
    user.status(key, "deleted")


def test_an_edit_for_another_version_is_refused(user: User) -> None:
    key = b"conditional"
    _, first = user.produce(key, EVERY)
    user.status(key, "active")
    user.produce(key, {"every": "PT2S"}, headers={"duewheel-if-offset": str(first + 99).encode()})
    answer = user.status(key, "rejected")
    assert f"in force is {first}, not {first + 99}" in answer["error"]
    _, second = user.produce(
        key, {"every": "PT2S"}, headers={"duewheel-if-offset": str(first).encode()}
    )
    user.find("job-status", key, lambda row: row["definition_offset"] == second)


def test_a_command_for_an_unknown_job_is_refused_and_a_good_one_done_once(user: User) -> None:
    command = {"command_id": "c1", "command": "trigger", "payload": {"by": "hand"}}
    user.produce(b"nobody", command, topic="job-commands")
    assert "nobody" in user.status(b"nobody", "rejected")["error"]
    key = b"triggered"
    user.produce(key, {"run_at": "2100-01-01T00:00:00Z"})
    user.status(key, "active")
    for _ in range(2):
        user.produce(key, command, topic="job-commands")
    marker = {"command_id": "c2", "command": "trigger"}
    user.produce(key, marker, topic="job-commands")
    user.find("runs", key, lambda row: row["command_id"] == "c2")
    runs = list(user.runs(key))
    assert [row["command_id"] for row in runs] == ["c1", "c2"]
    assert runs[0]["payload"] == {"by": "hand"}
    assert runs[0]["trigger"] == "manual"
    assert runs[0]["run_id"] == f"triggered@{runs[0]['scheduled_at']}#c1"


def test_a_finished_one_shot_is_collected(user: User) -> None:
    key = b"once"
    user.produce(key, {"run_at": "2026-01-01T00:00:00Z"})
    user.find("runs", key, lambda row: row["scheduled_at"] == "2026-01-01T00:00:00.000Z")
    user.status(key, "finished", deadline_s=90)
    assert user.guarded(key, "finished")["value"] is None
