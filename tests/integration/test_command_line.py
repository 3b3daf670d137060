"""The commands as typed, against a real Kafka, with and without a scheduler to answer them."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler.cli.answers import statuses
from scheduler.cli.cluster import Cluster, Deadline
from scheduler.contract.partition import partition_of
from scheduler.contract.topics import load_catalog
from scheduler.core.records import Outgoing
from scheduler.errors import ExitCode

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0

Done = subprocess.CompletedProcess[str]
Environment = Mapping[str, str]


def _duewheel(environment: Environment, *arguments: str, text: str = "") -> Done:
    return subprocess.run(
        [sys.executable, "-m", "duewheel", *arguments],
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def _json(environment: Environment, *arguments: str, text: str = "") -> Any:
    done = _duewheel(environment, *arguments, "-o", "json", text=text)
    assert done.returncode == ExitCode.OK, done.stderr
    return json.loads(done.stdout)


def _definition(job_id: str, **fields: Any) -> str:
    return json.dumps({"job_id": job_id, **fields})


def _refused(done: Done) -> str:
    assert done.returncode == ExitCode.FAILURE, done.stdout
    return done.stderr.splitlines()[-1]


def _spoil(environment: Environment, job_id: str) -> str:
    """Produce a bad definition past every check, as anybody can; the scheduler's refusal."""
    catalog = load_catalog(environment["DUEWHEEL_TOPIC_PREFIX"])
    cluster = Cluster({"bootstrap.servers": environment["KAFKA_BOOTSTRAP_SERVERS"]})
    deadline = Deadline.after(DEADLINE_S, "the refusal")
    key = job_id.encode()
    place = partition_of(key, catalog.partitions("jobs"))
    answers_at = partition_of(key, catalog.partitions("job-status"))
    with cluster.tail({catalog.name("job-status"): [answers_at]}, deadline) as tail:
        bad = Outgoing(catalog.name("jobs"), place, key, b'{"every":"sometimes"}')
        offset = cluster.send([bad], deadline)[0]
        return str(statuses(tail, {job_id: offset}, deadline)[job_id]["error"])


@pytest.mark.usefixtures("workers")
def test_the_life_of_a_job(environment: dict[str, str]) -> None:
    yearly = _definition("yearly", schedule="0 0 1 1 *", payload={"n": 1})
    answer = _json(environment, "apply", "-f", "-", text=yearly)[0]
    assert (answer["job_id"], answer["state"]) == ("yearly", "active")
    assert answer["next_run_at"].endswith("-01-01T00:00:00.000Z")

    jobs = _json(environment, "get", "jobs")
    assert [(job["job_id"], job["state"]) for job in jobs] == [("yearly", "active")]
    assert jobs[0]["definition"]["payload"] == {"n": 1}

    run = _json(environment, "trigger", "yearly", "--command-id", "by-hand")
    assert (run["status"], run["command_id"]) == ("dispatched", "by-hand")
    assert run["run_id"].endswith("#by-hand")

    runs = _json(environment, "get", "runs", "--job", "yearly", "--status", "dispatched")
    assert [each["run_id"] for each in runs] == [run["run_id"]]
    assert _json(environment, "get", "runs", "--status", "dead") == []

    described = _json(environment, "describe", "job", "yearly")
    assert len(described["next_runs"]) == 3
    assert [each["run_id"] for each in described["runs"]] == [run["run_id"]]

    edited = _definition("yearly", schedule="0 0 1 1 *", paused=True)
    assert _json(environment, "apply", "-f", "-", text=edited)[0]["state"] == "paused"

    assert "sometimes" in _spoil(environment, "yearly")
    described = _json(environment, "describe", "job", "yearly")
    assert (described["state"], described["definition"]) == ("paused", json.loads(edited))
    assert "sometimes" in described["status"]["error"]

    assert _json(environment, "delete", "job", "yearly")["state"] == "deleted"
    assert _json(environment, "get", "jobs") == []
    for command in (["delete", "job"], ["describe", "job"], ["trigger"]):
        assert "there is no job yearly" in _refused(_duewheel(environment, *command, "yearly"))


def test_without_a_scheduler_a_definition_is_written_and_that_is_said(
    environment: dict[str, str],
) -> None:
    text = _definition("waiting", every="PT1H")
    done = _duewheel(environment, "apply", "-f", "-", "--deadline", "3", text=text)
    assert "no scheduler answered for 1 of 1 definitions within 3 s" in _refused(done)
    assert done.stdout.splitlines()[1].split()[:2] == ["waiting", "unanswered"]
    assert [job["state"] for job in _json(environment, "get", "jobs")] == ["pending"]

    sent = _json(environment, "apply", "-f", "-", "--no-wait", text=text)
    assert [row["state"] for row in sent] == ["sent"]


def test_nothing_is_sent_while_any_definition_is_at_fault(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "good.yaml").write_text("job_id: good\nevery: PT1H\n")
    (tmp_path / "bad.yaml").write_text("job_id: bad\nevery: sometimes\n---\njob_id: worse\n")
    done = _duewheel(environment, "apply", "-f", str(tmp_path))
    assert _refused(done) == "duewheel: nothing was sent: 2 fault(s) to mend"
    assert len(done.stderr.splitlines()) == 3
    assert _json(environment, "get", "jobs") == []


def test_without_topics_the_remedy_is_named(bare_environment: dict[str, str]) -> None:
    done = _duewheel(bare_environment, "get", "jobs")
    assert done.returncode == ExitCode.CONFIG
    topic = f"{bare_environment['DUEWHEEL_TOPIC_PREFIX']}jobs"
    assert done.stderr == (
        f"duewheel: topic {topic} does not exist; create it: duewheel topics apply\n"
    )


def test_without_kafka_a_command_ends_within_its_deadline(bare_environment: dict[str, str]) -> None:
    alone = {**bare_environment, "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    done = _duewheel(alone, "get", "jobs", "--deadline", "2")
    assert "Kafka at 127.0.0.1:1" in _refused(done)
    assert len(done.stderr.splitlines()) == 1


def test_a_setting_that_is_not_valid_is_named(bare_environment: dict[str, str]) -> None:
    done = _duewheel({**bare_environment, "DUEWHEEL_TOPIC_PREFIX": "no spaces"}, "get", "jobs")
    assert done.returncode == ExitCode.CONFIG
    assert "DUEWHEEL_TOPIC_PREFIX" in done.stderr
    assert len(done.stderr.splitlines()) == 1
