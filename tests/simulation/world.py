"""One partition of the scheduler in a simulated world: logs, two workers, users, executors, time.

Theory of operation. The code under test is the real one (`runtime.partition`, `core.shard`, the
in-memory store's twin of RocksDB); the world gives it logs, a clock and accidents. A transaction
is atomic: all of it is appended, or nothing. Accidents: a transaction that is aborted, a worker
that dies between commit and the write to its store, a store lost or as old as its last flush, a
take-over by a worker that followed, outages longer than the grace. Ownership is given by the
world, so fencing itself is not in it: that is what chaos with a real Kafka shows.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from scheduler.contract.intake import ContractDecoder
from scheduler.core.cursor import WHOLE, Cursor
from scheduler.core.draft import Context, Setting
from scheduler.core.instant import format_instant
from scheduler.core.records import Incoming, Outgoing
from scheduler.core.reports import Fact, decode_fact
from scheduler.core.routes import Routes
from scheduler.core.shard import Decision, Shard
from scheduler.runtime.partition import Partition, State
from scheduler.store.memory import MemoryStore
from tests.checker.history import History
from tests.checker.read import history_of

START_MS = 1_800_000_000_000
ROUTES = Routes(job_partitions=1, run_partitions=1, cursor_partitions=1)
SETTING = Setting(routes=ROUTES, catch_up_ms=20_000, collect_after_ms=5_000)
LOGS = (ROUTES.jobs, ROUTES.commands, ROUTES.retries, ROUTES.runs("default"), ROUTES.status,
        ROUTES.history, ROUTES.cursors, "runs-dead-letter")  # fmt: skip


@dataclass(slots=True)
class Worker:
    """A store, and the partition as this worker knows it."""

    store: MemoryStore
    partition: Partition


@dataclass(slots=True)
class World:
    """Everything there is. `step` does one random thing, `finish` lets all come to rest."""

    random: Random
    now_ms: int = START_MS
    logs: dict[str, list[Incoming]] = field(default_factory=lambda: {name: [] for name in LOGS})
    committed: tuple[int, Cursor] | None = None
    workers: list[Worker] = field(default_factory=list)
    owner: int = 0
    _failed: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.committed = (0, Cursor(self.now_ms, WHOLE))
        self.workers = [self._worker(MemoryStore()) for _ in range(2)]
        self._take_over(0)

    # ---- what happens ----------------------------------------------------------------------

    def step(self) -> None:
        """One random thing."""
        chance = self.random.random()
        if chance < 0.40:
            self.turn()
        elif chance < 0.62:
            self.now_ms += self.random.choice([1, 20, 200, 999, 1000, 1500, 3000])
        elif chance < 0.80:
            self.users_change()
        elif chance < 0.88:
            self._executor_fails()
        elif chance < 0.94:
            self._follow()
        elif chance < 0.97:
            self._accident()
        else:
            self.now_ms += self.random.choice([5_000, 15_000, 40_000])

    def finish(self) -> History:
        """Turn until nothing is left to do, and hand back what users can see."""
        settled_ms = self.now_ms
        self.now_ms += 20_000
        for _ in range(1000):
            if not self.turn(calm=True) and self._shard.cursor.due_ms >= self.now_ms:
                break
        return history_of(self.logs, settled_ms)

    # ---- the owner -------------------------------------------------------------------------

    @property
    def _shard(self) -> Shard:
        shard = self.workers[self.owner].partition.shard
        assert shard is not None
        return shard

    def turn(self, *, calm: bool = False) -> bool:
        """One transaction of the owner; whether there was anything to do."""
        shard = self._shard
        drained = calm or self.random.random() < 0.8
        self._read_into(shard, everything=drained)
        if not shard.wants_turn(self.now_ms) and self.random.random() < 0.8:
            return False
        budget = 1000 if calm else self.random.choice([1, 3, 1000])
        decision = shard.decide(self.now_ms, self.now_ms, budget, drained)
        chance = 1.0 if calm else self.random.random()
        if chance < 0.08:
            return True  # aborted: nothing of it will ever be seen
        self._commit(decision)
        if chance < 0.14:
            self._die()
            return True
        worker = self.workers[self.owner]
        worker.store.write(decision.writes)
        shard.apply(decision)
        if self.random.random() < 0.2:
            worker.store.flush()
        return True

    def _read_into(self, shard: Shard, *, everything: bool) -> None:
        inbox = shard.inbox
        for name, records, position in (
            (ROUTES.jobs, inbox.jobs, shard.position),
            (ROUTES.commands, inbox.commands, shard.cursor.commands),
            (ROUTES.retries, inbox.retries, shard.cursor.retries),
        ):
            known = records[-1].offset + 1 if records else position
            fresh = self.logs[name][known:]
            most = len(fresh) if everything else self.random.randrange(len(fresh) + 1)
            records.extend(fresh[:most])

    def _commit(self, decision: Decision) -> None:
        for dispatch in decision.dispatches:
            for key, value in dispatch.messages:
                self.append(dispatch.topic, key, value)
        for record in decision.records:
            self._append_outgoing(record)
        self.committed = (decision.position, decision.cursor)

    # ---- take-overs and accidents --------------------------------------------------------------

    def _accident(self) -> None:
        chance = self.random.random()
        if chance < 0.4:
            self._die()
        elif chance < 0.7:
            self.workers[self.owner].partition.revoked()
            self._take_over(1 - self.owner)
        else:
            self._die(lose_store=True)

    def _die(self, *, lose_store: bool = False) -> None:
        """The owner dies; its store is as old as its last flush. Either worker takes over."""
        dead = self.owner
        store = MemoryStore() if lose_store else self.workers[dead].store.after_crash()
        self.workers[dead] = self._worker(store)
        self._take_over(self.random.randrange(2))

    def _worker(self, store: MemoryStore) -> Worker:
        partition = Partition(Context(0, store, ContractDecoder(1), self._facts, SETTING))
        partition.restore(0)
        return Worker(store, partition)

    def _take_over(self, number: int) -> None:
        partition = self.workers[number].partition
        self.owner = number
        partition.assigned()
        self._feed(partition)
        assert self.committed is not None
        if not partition.accepted(*self.committed, retry_end=len(self.logs[ROUTES.retries])):
            self._feed(partition)
        while not partition.work(self.now_ms):
            assert partition.has_work
        partition.go_live()

    def _follow(self) -> None:
        """The other worker applies what was accepted, as far as it has read."""
        partition = self.workers[1 - self.owner].partition
        if partition.state is not State.FOLLOWING:
            partition.revoked()
        self._feed(partition)
        assert self.committed is not None
        if partition.accepted(*self.committed, retry_end=None):
            for _ in range(self.random.randrange(4)):
                partition.work(self.now_ms)
        if self.random.random() < 0.5:
            self.workers[1 - self.owner].store.flush()

    def _feed(self, partition: Partition) -> None:
        for name, feed in (
            (ROUTES.jobs, partition.jobs),
            (ROUTES.commands, partition.commands),
            (ROUTES.retries, partition.retries),
        ):
            for record in self.logs[name][feed.read_to :]:
                feed.offer(record)
            feed.reached(len(self.logs[name]))

    def _facts(self, job_id: bytes) -> Fact | None:
        key = b"0/" + job_id
        newest = next((r for r in reversed(self.logs[ROUTES.cursors]) if r.key == key), None)
        return None if newest is None or newest.value is None else decode_fact(newest.value)

    # ---- users and executors -----------------------------------------------------------------

    def users_change(self) -> None:
        """Define, edit, delete, or write rubbish."""
        chance = self.random.random()
        key = f"job-{self.random.randrange(5)}".encode()
        if chance < 0.55:
            self.append(ROUTES.jobs, key, json.dumps(self._recurring()).encode())
        elif chance < 0.70:
            self.append(ROUTES.jobs, key, None)
        elif chance < 0.75:
            self.append(ROUTES.jobs, key, b'{"every":"PT0S"}')
        elif chance < 0.95:
            shot = f"shot-{self.random.randrange(6)}".encode()
            self.append(ROUTES.jobs, shot, json.dumps(self._one_shot()).encode())
        else:
            self.append(ROUTES.jobs, f"shot-{self.random.randrange(6)}".encode(), None)

    def _recurring(self) -> dict[str, object]:
        choose = self.random.choice
        return {
            "every": choose(["PT1S", "PT2S", "PT5S"]),
            "jitter_seconds": choose([0, 0, 3, 9]),
            "misfire_policy": choose(["run_once", "skip", "run_all"]),
            "misfire_grace_seconds": choose([1, 5, 60]),
            "misfire_window_seconds": choose([10, 30, 86400]),
        }

    def _one_shot(self) -> dict[str, object]:
        run_at_ms = self.now_ms + self.random.randrange(-20_000, 20_000, 500)
        return {
            "run_at": format_instant(run_at_ms),
            "jitter_seconds": self.random.choice([0, 0, 4]),
            "misfire_policy": self.random.choice(["run_once", "skip"]),
            "misfire_grace_seconds": self.random.choice([1, 60]),
        }

    def _executor_fails(self) -> None:
        """Hand one run of the last few back, to be attempted again later."""
        runs = [
            r
            for r in self.logs[ROUTES.runs("default")][-20:]
            if b'"kind":"run"' in (r.value or b"")
        ]
        if not runs:
            return
        command = json.loads(self.random.choice(runs).value or b"")
        identity = json.dumps([command[f] for f in ("run_id", "attempt", "definition_offset")])
        if identity.encode() in self._failed or command["attempt"] >= 3:
            return
        self._failed.add(identity.encode())
        delay_ms = self.random.randrange(0, 20_000)
        later = {
            **command, "attempt": command["attempt"] + 1, "trigger": "retry",
            "not_before": format_instant(self.now_ms + delay_ms), "last_error": "", "attempts": [],
        }  # fmt: skip
        self.append(ROUTES.retries, command["job_id"].encode(), json.dumps(later).encode())

    # ---- logs --------------------------------------------------------------------------------

    def append(self, topic: str, key: bytes, value: bytes | None) -> None:
        self._append_outgoing(Outgoing(topic, 0, key, value))

    def _append_outgoing(self, record: Outgoing) -> None:
        log = self.logs[record.topic]
        log.append(Incoming(record.topic, 0, len(log), self.now_ms, record.key, record.value,
                            record.headers))  # fmt: skip


def play(seed: int, steps: int, watch: Callable[[World], None] = lambda _: None) -> History:
    """A whole history from a seed."""
    world = World(Random(seed))
    for _ in range(steps):
        world.step()
        watch(world)
    return world.finish()
