"""Attempts on the event loop: how they end, and how they are made to."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from executor.core.outcome import Failed, Result, Succeeded
from executor.core.state import OpenRun
from executor.core.table import Phase
from executor.runtime.attempts import Attempts, Ended
from executor.targets.order import Order
from tests.unit.executor.building import command
from tests.unit.executor.runtime.twins import WAIT_S, ControlledTarget

PLACE = (3, 1)


class SleepyTarget:
    """Never answers by itself."""

    async def attempt(self, order: Order) -> Result:
        await asyncio.Event().wait()
        return Succeeded()

    async def close(self) -> None:
        pass


class BrokenTarget(SleepyTarget):
    """Fails in a way no target should."""

    async def attempt(self, order: Order) -> Result:
        raise LookupError("a bug")


@pytest.fixture
def target() -> ControlledTarget:
    return ControlledTarget()


@pytest.fixture
def attempts(target: ControlledTarget) -> Iterator[Attempts]:
    made = Attempts({"http": target, "sleepy": SleepyTarget(), "broken": BrokenTarget()})
    yield made
    made.close(WAIT_S)


def run(attempt: int = 1, kind: str = "http", timeout_seconds: int = 60) -> OpenRun:
    described = command(target={"kind": kind}, timeout_seconds=timeout_seconds)
    return OpenRun(described, Phase.RUNNING, attempt, 0, 5, "key", ())


def collect(attempts: Attempts) -> Ended:
    assert attempts.ended.wait(WAIT_S)
    (ended,) = attempts.drain()
    return ended


def test_result_is_collected_once(attempts: Attempts, target: ControlledTarget) -> None:
    attempts.start(PLACE, run())
    key = target.started.get(timeout=WAIT_S)
    target.answer(*key, Succeeded())
    assert collect(attempts) == Ended(PLACE, *key, Succeeded())
    assert (attempts.drain(), attempts.in_flight) == ([], 0)


def test_time_out_cancels_and_may_be_tried_again(attempts: Attempts) -> None:
    attempts.start(PLACE, run(kind="sleepy", timeout_seconds=0))
    assert collect(attempts).result == Failed("timed out after 0 s")


def test_bug_of_a_target_is_a_failure_of_its_attempt(attempts: Attempts) -> None:
    attempts.start(PLACE, run(kind="broken"))
    assert collect(attempts).result == Failed("LookupError: a bug")


def test_stopped_attempt_is_not_collected(attempts: Attempts, target: ControlledTarget) -> None:
    attempts.start(PLACE, run())
    key = target.started.get(timeout=WAIT_S)
    attempts.stop(key[0])
    assert target.cancelled.get(timeout=WAIT_S) == key
    assert (attempts.drain(), attempts.in_flight) == ([], 0)


def test_next_attempt_takes_the_place_of_a_lingering_one(
    attempts: Attempts, target: ControlledTarget
) -> None:
    attempts.start(PLACE, run(1))
    first = target.started.get(timeout=WAIT_S)
    attempts.start(PLACE, run(2))
    assert target.cancelled.get(timeout=WAIT_S) == first
    second = target.started.get(timeout=WAIT_S)
    target.answer(*second, Succeeded())
    assert collect(attempts).attempt == 2


def test_partition_that_is_lost_takes_only_its_own_along(
    attempts: Attempts, target: ControlledTarget
) -> None:
    attempts.start(PLACE, run())
    target.started.get(timeout=WAIT_S)
    assert attempts.stop_all(4) == 0
    assert attempts.is_under_way(run().run_id, 1)
    assert attempts.stop_all(3) == 1
    assert not attempts.is_under_way(run().run_id, 1)


def test_close_ends_the_thread_though_targets_hang(target: ControlledTarget) -> None:
    before = set(threading.enumerate())
    attempts = Attempts({"http": target})
    (thread,) = set(threading.enumerate()) - before
    attempts.start(PLACE, run())
    key = target.started.get(timeout=WAIT_S)
    attempts.close(WAIT_S)
    assert target.cancelled.get(timeout=WAIT_S) == key
    assert not thread.is_alive()
