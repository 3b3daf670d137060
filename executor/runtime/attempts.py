"""Attempts under way: an event loop in a thread of its own carries them out.

The core thread starts and stops attempts and collects what came of them; it never runs user
code and never waits for it. All three calls return at once.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from executor.core.outcome import Failed, Result
from executor.core.state import OpenRun
from executor.targets.order import Order, Target, order_of

Place = tuple[int, int]
"""(partition, number of the assignment): whose run it is. A partition that went and came back
is another place, so that what was begun before is not taken for what was begun after."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that came to an end by itself (not by `Attempts.stop`)."""

    place: Place
    run_id: str
    attempt: int
    result: Result


class Attempts:
    """Starts, stops, collects. The methods are for one thread, the core's.

    Args:
        targets: by kind.
    """

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._targets = dict(targets)
        self._under_way: dict[str, tuple[Place, int]] = {}
        self._futures: dict[str, asyncio.Future[Result]] = {}
        self._ended: deque[Ended] = deque()
        self.ended = threading.Event()
        """Set when something has come to an end; for waiting, by the loop and by tests."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="attempts",
                                        daemon=True)  # fmt: skip
        self._thread.start()

    @property
    def in_flight(self) -> int:
        """Attempts started and neither collected nor stopped."""
        return len(self._under_way)

    def is_under_way(self, run_id: str, attempt: int) -> bool:
        """Whether this very attempt was started here and has not been collected."""
        current = self._under_way.get(run_id)
        return current is not None and current[1] == attempt

    def start(self, place: Place, run: OpenRun) -> None:
        """Begin the current attempt of a run; an earlier one that still lingers is stopped."""
        self.stop(run.run_id)
        self._under_way[run.run_id] = (place, run.attempt)
        target = self._targets[run.command.target_kind]
        self._loop.call_soon_threadsafe(self._begin, place, order_of(run), target)

    def stop(self, run_id: str) -> None:
        """Cancel an attempt, if it is under way. Its result will not be collected."""
        if self._under_way.pop(run_id, None) is not None:
            self._loop.call_soon_threadsafe(self._cancel, run_id)

    def stop_all(self, partition: int) -> int:
        """Cancel every attempt of a partition's runs. Returns how many."""
        gone = [run_id for run_id, (place, _) in self._under_way.items() if place[0] == partition]
        for run_id in gone:
            self.stop(run_id)
        return len(gone)

    def drain(self) -> list[Ended]:
        """What ended since the last call, without what was stopped meanwhile."""
        self.ended.clear()
        collected = []
        while self._ended:
            ended = self._ended.popleft()
            if self._under_way.get(ended.run_id) == (ended.place, ended.attempt):
                del self._under_way[ended.run_id]
                collected.append(ended)
        return collected

    def close(self, deadline_s: float) -> None:
        """Cancel everything and end the thread, in ``deadline_s`` at most."""
        for run_id in list(self._under_way):
            self.stop(run_id)
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._close_targets(deadline_s), self._loop)
        self._thread.join(deadline_s)

    # ---- on the event loop -----------------------------------------------------------------

    def _begin(self, place: Place, order: Order, target: Target) -> None:
        future = asyncio.ensure_future(_within_time(order, target), loop=self._loop)
        self._futures[order.run_id] = future
        future.add_done_callback(lambda done: self._end(place, order, done))

    def _end(self, place: Place, order: Order, done: "asyncio.Future[Result]") -> None:
        if self._futures.get(order.run_id) is done:
            del self._futures[order.run_id]
        if done.cancelled():
            return
        error = done.exception()
        result = done.result() if error is None else Failed(f"{type(error).__name__}: {error}")
        self._ended.append(Ended(place, order.run_id, order.attempt, result))
        self.ended.set()

    def _cancel(self, run_id: str) -> None:
        future = self._futures.pop(run_id, None)
        if future is not None:
            future.cancel()

    async def _close_targets(self, deadline_s: float) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                for target in self._targets.values():
                    await target.close()
        except TimeoutError:
            pass
        finally:
            self._loop.stop()


async def _within_time(order: Order, target: Target) -> Result:
    try:
        async with asyncio.timeout(order.timeout_s):
            return await target.attempt(order)
    except TimeoutError:
        return Failed(f"timed out after {order.timeout_s:g} s")
