"""Run commands through real executor processes and a real Kafka."""

import pytest

from tests.integration.executor.line import Line, kill, run
from tests.integration.executor.server import TargetServer

pytestmark = pytest.mark.integration

NOON_MS = 1_790_000_000_000
HANDLERS = "tests.integration.executor.handlers"


def test_duplicated_command_executes_once(line: Line, server: TargetServer) -> None:
    command = run("report", NOON_MS, {"kind": "http", "url": server.url})
    line.send(command, command)
    line.start("one")
    line.wait_for_status(command["run_id"], "succeeded")
    line.send(command, run("report", NOON_MS + 1000, {"kind": "http", "url": server.url}))
    line.wait_for_status(f"report@{'2026-09-21T14:13:21.000Z'}", "succeeded")
    line.send(command)
    line.send(run("report", NOON_MS + 2000, {"kind": "http", "url": server.url}))
    line.wait_for_status("report@2026-09-21T14:13:22.000Z", "succeeded")
    keys = [request["idempotency-key"] for request in server.requests]
    assert keys == [f"report/2026-09-21T14:13:2{n}.000Z" for n in range(3)]
    assert line.history(command["run_id"]) == ["running", "succeeded"]


def test_kafka_target_takes_effect_once_across_a_kill(line: Line) -> None:
    topic = line.create_topic("orders")
    target = {"kind": "kafka", "topic": topic, "key": "98213", "headers": {"a": "b"}}
    commands = [run("orders", NOON_MS + 1000 * n, target) for n in range(300)]
    first = line.start("one")
    for at in range(0, 300, 50):
        line.send(*commands[at : at + 50])
        if at == 150:
            line.wait_for("some effect", lambda: len(line.read(topic)) > 0)
            kill(first)
            line.start("two")
    last = commands[-1]["run_id"]
    line.wait_for_status(last, "succeeded")
    instants = [row["headers"]["X-Scheduled-At"].decode() for row in line.read(topic)]
    assert sorted(instants) == sorted({command["scheduled_at"] for command in commands})
    assert {row["key"] for row in line.read(topic)} == {"98213"}
    assert line.read(topic)[0]["value"] == {"n": NOON_MS}


def test_failure_goes_through_the_retry_topic(line: Line, server: TargetServer) -> None:
    server.codes.extend([200])
    server.codes[0] = 500
    target = {"kind": "http", "url": server.url}
    command = run("flaky", NOON_MS, target, retry_base_seconds=3600)
    line.start("one", retry_here_seconds="0")
    line.send(command)
    line.wait_for("a delayed run", lambda: len(line.values("runs-retry")) == 1)
    (delayed,) = line.values("runs-retry")
    assert delayed["attempt"] == 2
    assert delayed["last_error"] == "HTTP 500"
    line.send(delayed, command, delayed)
    line.wait_for_status(command["run_id"], "succeeded")
    assert line.history(command["run_id"]) == ["running", "retrying", "running", "succeeded"]
    assert [request["x-attempt"] for request in server.requests] == ["1", "2"]


def test_attempts_used_up_end_in_the_dead_letters(line: Line, server: TargetServer) -> None:
    server.codes[0] = 503
    target = {"kind": "http", "url": server.url}
    line.start("one")
    command = run("down", NOON_MS, target, max_attempts=2, retry_base_seconds=0)
    line.send(command, run("gone", NOON_MS, {"kind": "http", "url": "no-url"}))
    line.wait_for("two dead letters", lambda: len(line.values("runs-dead-letter")) == 2)
    letters = {letter["job_id"]: letter for letter in line.values("runs-dead-letter")}
    assert [one["error"] for one in letters["down"]["attempts"]] == ["HTTP 503", "HTTP 503"]
    assert letters["gone"]["attempt"] == 1
    assert line.history(command["run_id"])[-1] == "dead"


def test_python_handlers(line: Line) -> None:
    line.start("one", handlers=HANDLERS)
    line.send(
        run("hello", NOON_MS, {"kind": "python", "handler": f"{HANDLERS}:greet"}),
        run("no", NOON_MS, {"kind": "python", "handler": f"{HANDLERS}:refuse"}),
        run("evil", NOON_MS, {"kind": "python", "handler": "os:getcwd"}),
        run("none", NOON_MS, {"kind": "none"}),
    )
    at = "2026-09-21T14:13:20.000Z"
    line.wait_for_status(f"hello@{at}", "succeeded")
    line.wait_for("dead letters", lambda: len(line.values("runs-dead-letter")) == 2)
    errors = {letter["job_id"]: letter["last_error"] for letter in line.values("runs-dead-letter")}
    assert errors["no"] == f"no {{'n': {NOON_MS}}}"
    assert errors["evil"] == "handler 'os:getcwd' is not registered here"
    assert line.history(f"none@{at}") == ["dispatched"]


def test_open_run_is_attempted_again_by_the_next_owner(line: Line, server: TargetServer) -> None:
    server.gate.clear()
    command = run("long", NOON_MS, {"kind": "http", "url": server.url})
    first = line.start("one")
    line.send(command)
    line.wait_for("the first attempt", lambda: len(server.requests) == 1)
    kill(first)
    server.gate.set()
    line.start("two", inherit_seconds="1")
    line.wait_for_status(command["run_id"], "succeeded")
    assert [request["x-attempt"] for request in server.requests] == ["1", "2"]
    assert len({request["idempotency-key"] for request in server.requests}) == 1
    attempts = line.values("run-history")[-1]["attempts"]
    assert [one["error"] for one in attempts] == ["executor one was lost", None]
