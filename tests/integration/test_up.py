"""``duewheel up`` runs the example jobs and leaves nothing behind after Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Kafka

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
EXAMPLES = {"example-once", "example-every-5s", "example-python"}
"""Those that run within ten seconds."""


@pytest.fixture
def up(kafka: Kafka, prefix: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
        "DUEWHEEL_TOPIC_PREFIX": prefix,
        "DUEWHEEL_SESSION_TIMEOUT_MS": "6000",  # what a killed worker's jobs wait for
        "PYTHONUNBUFFERED": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "duewheel", "up"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    overdue = threading.Timer(DEADLINE_S, process.kill)
    overdue.start()
    yield process
    overdue.cancel()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _read_until(up: subprocess.Popen[str], said: list[str], enough: Callable[[], bool]) -> None:
    """Read lines until ``enough``; the fixture's timer ends the process, and so the lines."""
    assert up.stdout is not None
    while not enough():
        line = up.stdout.readline()
        assert line, "".join(said)
        said.append(line)


def _succeeded(said: list[str]) -> set[str]:
    return {line.split()[1] for line in said if " succeeded " in line}


def _children(said: list[str]) -> list[int]:
    return [int(pid) for pid in re.findall(r"started[a-z ]* \(process (\d+)\)", "".join(said))]


def test_the_examples_run_until_ctrl_c_which_ends_every_process(up: subprocess.Popen[str]) -> None:
    said: list[str] = []
    _read_until(up, said, lambda: _succeeded(said) >= EXAMPLES)
    scheduler, executor = _children(said)
    assert _exists(scheduler)
    assert _exists(executor)

    os.kill(scheduler, signal.SIGKILL)
    again: list[str] = []
    _read_until(up, again, lambda: len(_children(again)) == 1)
    _read_until(up, again, lambda: "example-every-5s" in _succeeded(again[-1:]))

    up.send_signal(signal.SIGINT)
    assert up.stdout is not None
    rest = up.stdout.read()
    assert up.wait(DEADLINE_S) == 0, rest
    assert rest.splitlines()[-1] == "stopped"
    assert not any(_exists(pid) for pid in (scheduler, executor, *_children(again)))


def test_a_worker_that_cannot_start_ends_it_with_the_reason(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
        "DUEWHEEL_TOPIC_PREFIX": prefix,
        "DUEWHEEL_HANDLERS": "no_such_module",
    }
    done = subprocess.run(
        [sys.executable, "-m", "duewheel", "up", "--no-examples"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 3
    assert re.fullmatch(r"duewheel: executor ended with exit code 3 \(CONFIG\); see .*log\n",
                        done.stderr)  # fmt: skip
    assert "no_such_module" in (tmp_path / ".duewheel" / "log" / "executor.log").read_text()
