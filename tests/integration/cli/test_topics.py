"""``duewheel topics`` as an operator calls it: what it prints and how it ends."""

import json

import pytest
from typer.testing import CliRunner, Result

from scheduler.cli.main import build_app
from scheduler.contract.topics import load_catalog
from scheduler.errors import ExitCode
from scheduler.kafka.admin import KafkaAdmin
from tests.conftest import Kafka

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _settings(kafka: Kafka, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap)
    monkeypatch.setenv("DUEWHEEL_TOPIC_PREFIX", prefix)


def topics(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["topics", *arguments])


def test_plan_then_apply_then_check(prefix: str) -> None:
    planned = topics("plan", "-o", "json")
    assert planned.exit_code == ExitCode.OK
    missing = json.loads(planned.stdout)
    assert {each["topic"] for each in missing} == {spec.name for spec in load_catalog(prefix)}
    assert {each["severity"] for each in missing} == {"missing"}

    refused = topics("check")
    assert refused.exit_code == ExitCode.CONFIG
    assert f"{prefix}jobs: missing (256 partitions); run: duewheel topics apply" in refused.stderr

    assert topics("apply").exit_code == ExitCode.OK

    checked = topics("check")
    assert checked.exit_code == ExitCode.OK
    assert checked.stdout == "all topics are as topics.yaml says\n"
    assert topics("apply").stdout == "nothing to do\n"


def test_check_names_what_is_wrong_and_apply_mends_it(kafka: Kafka, prefix: str) -> None:
    assert topics("apply").exit_code == ExitCode.OK
    admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap})
    admin.alter(f"{prefix}cursors", {"message.timestamp.type": "CreateTime"})

    refused = topics("check")
    assert refused.exit_code == ExitCode.CONFIG
    assert "message.timestamp.type is CreateTime, must be LogAppendTime" in refused.stderr

    mended = topics("apply")
    assert mended.exit_code == ExitCode.OK
    assert f"{prefix}cursors" in mended.stdout
    assert topics("check").exit_code == ExitCode.OK
