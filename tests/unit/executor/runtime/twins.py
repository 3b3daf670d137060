"""In-memory twins of Kafka's edge, and a target that a test answers for."""

import asyncio
import json
import queue
import random
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from executor.core.outcome import Result
from executor.runtime.attempts import Attempts
from executor.runtime.worker import Edges, Worker, WorkerConfig
from executor.targets.order import Order
from scheduler.core.records import Dispatch, Incoming, Outgoing
from scheduler.errors import FencedError
from scheduler.kafka.ownership import Fence, OwnershipChange
from scheduler.kafka.positions import Position
from scheduler.kafka.reader import Batch
from scheduler.kafka.transaction import Aborted, Committed, OffsetCommit, Outcome, Uncertain
from tests.unit.executor.building import ROUTES, T0, Deliveries, plain

Place = tuple[str, int]
WAIT_S = 10.0


@dataclass(slots=True)
class Cluster:
    """Logs and committed offsets; what outlives every executor."""

    logs: dict[Place, list[tuple[bytes, bytes | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    offsets: dict[int, int] = field(default_factory=dict)

    def send(self, *commands: Mapping[str, Any], partition: int = 0) -> None:
        for value in commands:
            key = str(value["job_id"]).encode()
            self.logs["runs", partition].append((key, json.dumps(value).encode()))

    def history(self) -> list[tuple[str, str, int]]:
        """(run id, status, attempt) of every row, in order within each partition."""
        rows = [json.loads(value or b"") for (topic, _), log in sorted(self.logs.items())
                if topic == "run-history" for _, value in log]  # fmt: skip
        return [(row["run_id"], row["status"], row["attempt"]) for row in rows]


class MemoryGroup:
    """A group whose assignment the test decides."""

    def __init__(self) -> None:
        self.changes: deque[OwnershipChange] = deque()
        self.is_member = True
        self.fences = 0

    def poll(self, timeout_s: float = 0.0) -> OwnershipChange:
        assert not self.fences, "polled within a transaction"
        return self.changes.popleft() if self.changes else OwnershipChange()

    @contextmanager
    def fence(self) -> Iterator[Fence]:
        if not self.is_member:
            raise FencedError("not a member")
        self.fences += 1
        yield Fence(None, 1, "me")
        self.fences -= 1

    def close(self, deadline_s: float) -> None:
        pass


class MemoryLog:
    """Reads the cluster's logs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.positions: dict[Place, int] = {}

    def add(self, positions: Mapping[Place, int]) -> None:
        assert not self.positions.keys() & positions.keys()
        self.positions.update({place: max(0, at) for place, at in positions.items()})

    def remove(self, partitions: Iterable[Place]) -> None:
        for place in partitions:
            self.positions.pop(place, None)

    def poll(self, max_records: int, timeout_s: float) -> Batch:
        batch = Batch()
        for place, at in sorted(self.positions.items()):
            for key, value in self._cluster.logs[place][at : at + max_records]:
                batch.records.append(Incoming(*place, self.positions[place], T0, key, value))
                self.positions[place] += 1
            batch.ends[place] = self.positions[place]
        return batch

    def close(self, deadline_s: float) -> None:
        pass


class MemoryAnswers:
    """Answers at once, from what is committed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._asked: list[int] = []

    def request(self, partitions: Iterable[int]) -> None:
        self._asked.extend(partitions)

    def drain(self) -> list[Position]:
        asked, self._asked = self._asked, []
        ends = {number: len(self._cluster.logs["run-state", number]) for number in asked}
        return [Position(number, self._cluster.offsets.get(number), None, stable=True,
                         log_ends={"run-state": ends[number]}) for number in asked]  # fmt: skip

    def close(self, deadline_s: float) -> None:
        pass


class MemoryCommitter:
    """Commits, unless the test planned another end for the next transactions.

    Attributes:
        plan: outcomes of the next transactions; an `Uncertain` whose reason is "kept" came
            through all the same.
        poison: a value that aborts every transaction it is in.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.plan: deque[Outcome] = deque()
        self.poison: bytes | None = None
        self.sizes: list[int] = []

    def commit(self, fence: Fence, records: Iterable[Outgoing | Dispatch],
               offsets: Mapping[Place, OffsetCommit]) -> Outcome:  # fmt: skip
        assert fence.is_open
        assert offsets
        staged = [one for one in records if isinstance(one, Outgoing)]
        self.sizes.append(len(staged))
        if self.poison is not None and any(one.value == self.poison for one in staged):
            return Aborted("too large")
        outcome = self.plan.popleft() if self.plan else Committed()
        if outcome in (Committed(), Uncertain("kept")):
            for one in staged:
                self._cluster.logs[one.topic, one.partition].append((one.key, one.value))
            self._cluster.offsets.update({place[1]: one.offset for place, one in offsets.items()})
        return outcome

    def close(self, deadline_s: float) -> None:
        pass


class ControlledTarget:
    """A target that a test answers for."""

    def __init__(self) -> None:
        self.started: queue.Queue[tuple[str, int]] = queue.Queue()
        self.cancelled: queue.Queue[tuple[str, int]] = queue.Queue()
        self._pending: dict[tuple[str, int], asyncio.Future[Result]] = {}

    async def attempt(self, order: Order) -> Result:
        key = (order.run_id, order.attempt)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending[key] = future
        self.started.put(key)
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled.put(key)
            raise

    async def close(self) -> None:
        pass

    def answer(self, run_id: str, attempt: int, result: Result) -> None:
        future = self._pending[run_id, attempt]
        future.get_loop().call_soon_threadsafe(future.set_result, result)


class Bench:
    """One executor over a cluster of its own or another's, stepped by hand."""

    def __init__(self, cluster: Cluster | None = None, **config: Any) -> None:
        self.cluster = cluster or Cluster()
        self.group, self.committer = MemoryGroup(), MemoryCommitter(self.cluster)
        self.target, self.deliveries = ControlledTarget(), Deliveries()
        self.attempts = Attempts({"http": self.target})
        self.command_log = MemoryLog(self.cluster)
        edges = Edges(self.group, MemoryAnswers(self.cluster), MemoryLog(self.cluster),
                      self.command_log, self.committer, self.attempts, self.deliveries)  # fmt: skip
        self.now_ms, self.monotonic_ms = T0, 0
        self.worker = Worker(WorkerConfig("me", ROUTES, **config), edges, random.Random(1))

    def assign(self, *partitions: int) -> None:
        """Give partitions and let the executor take them over."""
        self.group.changes.append(OwnershipChange(assigned=frozenset(partitions)))
        self.worker.step(self.now_ms, self.monotonic_ms)

    def lose(self, *partitions: int) -> None:
        self.group.changes.append(OwnershipChange(lost=frozenset(partitions)))

    def step(self, times: int = 1, after_ms: int = 1) -> None:
        for _ in range(times):
            self.now_ms += after_ms
            self.monotonic_ms += after_ms
            self.worker.wait(0.0)
            self.worker.step(self.now_ms, self.monotonic_ms)

    def started(self) -> tuple[str, int]:
        return self.target.started.get(timeout=WAIT_S)

    def answer(self, run_id: str, attempt: int, result: Result) -> None:
        """Let an attempt end, and wait until the executor could know of it."""
        self.attempts.ended.clear()
        self.target.answer(run_id, attempt, result)
        assert self.attempts.ended.wait(WAIT_S)

    def close(self) -> None:
        self.worker.close(WAIT_S)


def run_id(nth: int) -> str:
    return str(plain(at_ms=T0 + nth)["run_id"])
