"""One worker process and one user for the tests of this folder; each test has its own job ids."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Kafka
from tests.integration.scheduler.line import User
from tests.performance.worker_process import WorkerProcess


@pytest.fixture(scope="module")
def worker(
    kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WorkerProcess, User]]:
    prefix = kafka.fresh_prefix()
    catalog = kafka.topics(prefix)
    user = User(kafka.bootstrap, catalog)
    # A finished one-shot is collected with the next transaction of its partition, which an idle
    # one makes for the backup of its cursor.
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("DUEWHEEL_CURSOR_BACKUP_SECONDS", "5")
    folder: Path = tmp_path_factory.mktemp("scheduler")
    with WorkerProcess("scheduler", kafka.bootstrap, prefix, folder) as process:
        process.wait_for("takeover_finished", 60)
        yield process, user
    user.close()
    monkeypatch.undo()


@pytest.fixture
def user(worker: tuple[WorkerProcess, User]) -> User:
    return worker[1]
