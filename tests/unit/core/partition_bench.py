"""One partition on a bench: a log to append to, a clock to turn, everything sent on the table."""

import json
from dataclasses import dataclass, field
from typing import Any

from scheduler.contract.intake import ContractDecoder
from scheduler.core.cursor import Cursor
from scheduler.core.draft import Context, Setting
from scheduler.core.guard import Guard, guard_headers
from scheduler.core.instant import format_instant, parse_instant
from scheduler.core.records import Headers, Incoming, Outgoing
from scheduler.core.reports import Fact, decode_fact
from scheduler.core.routes import Routes
from scheduler.core.shard import Decision, Shard
from scheduler.runtime.partition import Partition
from scheduler.store.memory import MemoryStore

T0 = 1_800_000_000_000
"""2027-01-15T08:00:00Z, a whole minute; the bench counts seconds from here."""

ONE = Routes(job_partitions=1, run_partitions=1, cursor_partitions=1)


def at(seconds: float) -> int:
    """Epoch milliseconds of a moment of the bench."""
    return T0 + round(1000 * seconds)


def text(seconds: float) -> str:
    """The same as RFC 3339."""
    return format_instant(at(seconds))


@dataclass
class Bench:
    """Feeds a shard; `turn` decides and applies as the worker does.

    Attributes:
        sent: run commands so far, as JSON, oldest first.
        told: job-status so far.
        missed: run-history of instants not dispatched.
    """

    setting: Setting = field(default_factory=lambda: Setting(routes=ONE))
    store: MemoryStore = field(default_factory=MemoryStore)
    logs: dict[str, list[Incoming]] = field(
        default_factory=lambda: {"jobs": [], "job-commands": [], "runs-retry": []}
    )
    facts: dict[bytes, Fact] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    missed: list[dict[str, Any]] = field(default_factory=list)
    last: Decision | None = None

    def __post_init__(self) -> None:
        self.shard = Shard(self.context(self.store), 0, Cursor(T0), 0)

    def context(self, store: MemoryStore) -> Context:
        return Context(
            0, store, ContractDecoder(1, ("default", "bulk")), self.facts.get, self.setting
        )

    # ---- what users and executors do -----------------------------------------------------

    def put(self, key: str, when: float, headers: Headers = (), **definition: Any) -> int:
        """Produce a definition; its offset."""
        return self.append("jobs", key, json.dumps(definition).encode(), when, headers)

    def put_raw(self, key: str, when: float, value: bytes | None, headers: Headers = ()) -> int:
        return self.append("jobs", key, value, when, headers)

    def delete(self, key: str, when: float) -> int:
        return self.append("jobs", key, None, when)

    def command(self, key: str, when: float, **command: Any) -> int:
        return self.append("job-commands", key, json.dumps(command).encode(), when)

    def retry(self, run: dict[str, Any], when: float, not_before: float) -> int:
        """An executor hands a run back for its next attempt."""
        again = {**run, "attempt": run["attempt"] + 1, "trigger": "retry",
                 "not_before": text(not_before)}  # fmt: skip
        return self.append("runs-retry", run["job_id"], json.dumps(again).encode(), when)

    def append(
        self, log: str, key: str, value: bytes | None, when: float, headers: Headers = ()
    ) -> int:
        record = Incoming(log, 0, len(self.logs[log]), at(when), key.encode(), value, headers)
        self.logs[log].append(record)
        inbox = self.shard.inbox
        {"jobs": inbox.jobs, "job-commands": inbox.commands, "runs-retry": inbox.retries}[
            log
        ].append(record)
        return record.offset

    # ---- what the worker does --------------------------------------------------------------

    def turn(self, now: float, budget: int = 1_000, hand: float | None = None) -> list[str]:
        """One committed transaction; the run ids it dispatched, instants in bench seconds."""
        decision = self.shard.decide(
            at(now), at(now if hand is None else hand), budget, drained=True
        )
        self._commit(decision, now)
        return self._names(decision)

    def dropped_turn(self, now: float) -> None:
        """A transaction that was aborted."""
        self.shard.decide(at(now), at(now), 1_000, drained=True)

    def rebuilt(self) -> Shard:
        """A taker's shard, from an empty store and the logs."""
        partition = Partition(self.context(MemoryStore()))
        partition.assigned()
        for name, feed in (("jobs", partition.jobs), ("job-commands", partition.commands),
                           ("runs-retry", partition.retries)):  # fmt: skip
            for record in self.logs[name]:
                feed.offer(record)
            feed.reached(len(self.logs[name]))
        assert partition.accepted(self.shard.position, self.shard.cursor, 0)
        while not partition.work(at(0)):
            pass
        return partition.go_live()

    def _commit(self, decision: Decision, now: float) -> None:
        for dispatch in decision.dispatches:
            self.sent += [json.loads(value) for _, value in dispatch.messages]
        self.store.write(decision.writes)
        self.shard.apply(decision)
        self.last = decision
        for record in decision.records:
            self._written(record, now)

    def _written(self, record: Outgoing, now: float) -> None:
        name = record.key.decode()
        if record.topic in self.logs:
            self.append(record.topic, name, record.value, now, record.headers)
        elif record.topic == "cursors":
            fact = None if record.value is None else decode_fact(record.value)
            self.facts.pop(record.key.partition(b"/")[2], None)
            if fact is not None:
                self.facts[record.key.partition(b"/")[2]] = fact
        elif record.value is not None:
            table = {"job-status": self.told, "run-history": self.missed}[record.topic]
            table.append(json.loads(record.value))

    @staticmethod
    def _names(decision: Decision) -> list[str]:
        values = [json.loads(v) for d in decision.dispatches for _, v in d.messages]
        return [name(value) for value in values]


def name(run: dict[str, Any]) -> str:
    """A run as ``job@seconds`` of the bench, with its attempt beyond the first."""
    if run["kind"] != "run":
        return f"{run['kind']} {run['job_id']}"
    seconds = (parse_instant(run["scheduled_at"]) - T0) / 1000
    attempt = "" if run["attempt"] == 1 else f"#{run['attempt']}"
    return f"{run['job_id']}@{seconds:g}{attempt}"


def guarded(acts_on: int, source: int, when: float, why: Any) -> Headers:
    return guard_headers(Guard(acts_on, source, at(when), why))
