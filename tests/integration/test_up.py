"""``duewheel up`` runs the example jobs and leaves nothing behind after Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
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


def test_the_examples_run_until_ctrl_c_which_ends_every_process(up: subprocess.Popen[str]) -> None:
    said: list[str] = []
    succeeded: set[str] = set()
    assert up.stdout is not None
    for line in up.stdout:
        said.append(line)
        if " succeeded " in line:
            succeeded.add(line.split()[1])
        if succeeded >= EXAMPLES:
            break
    assert succeeded >= EXAMPLES, "".join(said)

    children = [int(pid) for pid in re.findall(r"started \(process (\d+)\)", "".join(said))]
    assert len(children) == 2
    assert all(_exists(pid) for pid in children)

    up.send_signal(signal.SIGINT)
    rest = up.stdout.read()
    assert up.wait(DEADLINE_S) == 0, rest
    assert rest.splitlines()[-1] == "stopped"
    assert not any(_exists(pid) for pid in children)


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
