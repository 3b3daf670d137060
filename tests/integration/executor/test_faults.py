"""Executors that come, go and freeze while runs keep coming."""

import signal

import pytest

from scheduler.errors import ExitCode
from tests.integration.executor.line import DEADLINE_S, Line, run
from tests.integration.executor.server import TargetServer

pytestmark = pytest.mark.integration

NOON_MS = 1_790_000_000_000


def test_stop_finishes_what_is_under_way(line: Line, server: TargetServer) -> None:
    server.gate.clear()
    command = run("report", NOON_MS, {"kind": "http", "url": server.url})
    process = line.start("one")
    line.send(command)
    line.wait_for("the attempt", lambda: len(server.requests) == 1)
    process.send_signal(signal.SIGTERM)
    line.wait_for("draining", lambda: "executor_draining" in line.log("one"))
    server.gate.set()
    assert process.wait(DEADLINE_S) == ExitCode.OK
    assert line.history(command["run_id"]) == ["running", "succeeded"]


def test_moving_partitions_lose_and_double_nothing(line: Line) -> None:
    """One executor joins, one freezes beyond its session and wakes up again."""
    topic = line.create_topic("orders")
    target = {"kind": "kafka", "topic": topic}
    commands = [run(f"job{n % 20}", NOON_MS + 1000 * n, target) for n in range(400)]
    first = line.start("one")
    line.send(*commands[:100])
    line.wait_for("effects", lambda: len(line.read(topic)) == 100)
    line.start("two")
    line.send(*commands[100:200])
    line.wait_for("two joins", lambda: '"partitions_assigned"' in line.log("two"))
    first.send_signal(signal.SIGSTOP)
    line.send(*commands[200:300], *commands[:50])
    line.wait_for("more effects", lambda: len(line.read(topic)) >= 300)
    first.send_signal(signal.SIGCONT)
    line.send(*commands[300:], *commands[150:250])
    line.wait_for("all effects", lambda: len(line.read(topic)) >= 400)
    made = [(row["headers"]["X-Job-Id"], row["headers"]["X-Scheduled-At"])
            for row in line.read(topic)]  # fmt: skip
    wanted = {(one["job_id"].encode(), one["scheduled_at"].encode()) for one in commands}
    assert len(made) == 400
    assert set(made) == wanted


def test_a_flood_is_claimed_in_bounds(line: Line, server: TargetServer) -> None:
    server.gate.clear()
    target = {"kind": "http", "url": server.url}
    commands = [run(f"job{n}", NOON_MS + n, target) for n in range(60)]
    line.send(*commands)
    line.start("one", max_in_flight="10")
    line.wait_for("ten attempts", lambda: len(server.requests) == 10)
    running = [row for row in line.values("run-history") if row["status"] == "running"]
    assert len(running) == 10
    server.gate.set()
    line.wait_for("the rest", lambda: _succeeded(line) == 60)
    assert len(server.requests) == 60


def _succeeded(line: Line) -> int:
    return sum(row["status"] == "succeeded" for row in line.values("run-history"))
