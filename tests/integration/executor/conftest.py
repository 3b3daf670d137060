"""A line and a local HTTP target for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Kafka
from tests.integration.executor.line import Line, make_line
from tests.integration.executor.server import TargetServer


@pytest.fixture
def line(kafka: Kafka, prefix: str, tmp_path: Path) -> Iterator[Line]:
    made = make_line(kafka.bootstrap, prefix, tmp_path)
    yield made
    made.stop()


@pytest.fixture
def server() -> Iterator[TargetServer]:
    made = TargetServer()
    yield made
    made.close()
