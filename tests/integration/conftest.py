"""A scheduler and an executor as processes, for tests that go the whole line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Kafka


@pytest.fixture
def bare_environment(kafka: Kafka, prefix: str, tmp_path: Path) -> dict[str, str]:
    """Where commands find Kafka; no topics are there yet."""
    return {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
        "DUEWHEEL_TOPIC_PREFIX": prefix,
        "DUEWHEEL_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture
def environment(kafka: Kafka, prefix: str, bare_environment: dict[str, str]) -> dict[str, str]:
    """The same, with every topic there."""
    kafka.topics(prefix)
    return bare_environment


@pytest.fixture
def workers(environment: dict[str, str], tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A scheduler and an executor, as processes of their own."""
    running = []
    for name in ("scheduler", "executor"):
        with (tmp_path / f"{name}.log").open("wb") as output:
            command = [sys.executable, "-m", "duewheel", name]
            running.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output))
    yield running
    for process in running:
        process.kill()
        process.wait()
