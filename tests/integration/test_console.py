"""A definition produced with Kafka's own console producer runs, and is seen with its consumer.

The commands are those of README.md.
"""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.contract.history import RunHistory, RunStatus
from scheduler.contract.run import RunCommand
from tests.conftest import Kafka
from tests.integration.readme import ROOT, adapted, commands

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
SECTION = "A job from Kafka's console producer"


def _shell(command: str, environment: Mapping[str, str]) -> str:
    shell = subprocess.Popen(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, complained = shell.communicate(timeout=DEADLINE_S)
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)  # every part of the pipe
    assert shell.returncode == 0, f"{command}\n{said}\n{complained}"
    return said


def _value(line: str) -> tuple[str, dict[str, Any]]:
    key, _, value = line.partition("|")
    return key, json.loads(value)


def test_what_the_readme_says_about_the_console_works(
    kafka: Kafka, prefix: str, environment: dict[str, str], workers: list[subprocess.Popen[bytes]]
) -> None:
    address, define, status, runs, history, command_line = (
        adapted(command, prefix) for command in commands(SECTION)
    )
    assert address.startswith("export KAFKA_BOOTSTRAP_SERVERS=")
    environment = {**environment, "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap}
    # The README begins with everything running: an answered job says that it is.
    _shell(
        ".venv/bin/duewheel apply --filename examples/every-minute.yaml --deadline 60", environment
    )
    _shell(define, environment)

    key, answer = _value(_shell(status, environment).splitlines()[-1])
    assert (key, answer["state"], answer["error"]) == ("hello", "active", None)

    key, value = _value(_shell(runs, environment))
    command = RunCommand.decode(json.dumps(value).encode())
    assert (key, command.job_id, command.payload) == ("hello", "hello", {"text": "hello"})

    key, value = _value(_shell(history, environment))
    row = RunHistory.decode(json.dumps(value).encode())
    assert key == row.run_id == command.run_id
    assert row.status is RunStatus.DISPATCHED

    described, listed, deleted = _each_line(command_line, environment)
    assert "every PT5S" in described
    assert "dispatched" in listed
    assert deleted.startswith("job hello deleted from ")

    for process in workers:
        process.send_signal(signal.SIGTERM)
    assert [process.wait(DEADLINE_S) for process in workers] == [0, 0]


def _each_line(block: str, environment: Mapping[str, str]) -> list[str]:
    return [_shell(line, environment) for line in block.strip().splitlines()]
