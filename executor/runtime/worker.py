"""An executor: one bounded step after another, each from one clock reading.

A step lets the group give and take partitions, goes on with take-overs, collects what attempts
came to, and makes at most one transaction. Between steps the loop waits, reading commands.
Handlers start after the transaction that recorded them has committed. The group is never polled
between the first produce of a transaction and its end.
"""

import heapq
import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import structlog

from executor import events
from executor.core.machine import Context, Delivery
from executor.core.routes import ExecutorRoutes
from executor.core.state import OpenRun
from executor.core.table import Event, Phase
from executor.runtime.attempts import Attempts, Place
from executor.runtime.batch import Batch, Share, build
from executor.runtime.held import Due, Held
from executor.runtime.holdings import Holdings
from executor.runtime.ports import Answers, Committer, Group, Log
from scheduler.errors import FencedError
from scheduler.kafka.transaction import Aborted, Committed, Outcome, Uncertain

log = structlog.get_logger("executor")

ABORTS_TOLERATED = 3
"""Aborts in a row of a transaction with a single input before that input's run is refused."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Bounds of an executor.

    Attributes:
        max_in_flight: attempts under way or waiting here; beyond it none is started.
        inherit_ms: time an inherited run is given before its next attempt (monotonic).
        soon_ms: next attempts nearer than this wait in this process.
        inputs_max: commands, results and due attempts in one transaction.
        backlog_max: commands read ahead.
    """

    instance: str
    routes: ExecutorRoutes
    max_in_flight: int = 200
    inherit_ms: int = 30_000
    soon_ms: int = 5_000
    inputs_max: int = 1_000
    backlog_max: int = 2_000


class Deliveries(Delivery, Protocol):
    """A delivery that learns from transactions that failed."""

    def doubt(self) -> None:
        """A transaction was aborted: what is known of topics may be out of date."""
        ...

    def refuse(self, run_id: str, reason: str) -> None:
        """Let the next delivery of the run fail for good: its message aborts transactions."""
        ...


@dataclass(frozen=True, slots=True)
class Edges:
    """What an executor stands on."""

    group: Group
    answers: Answers
    state_log: Log
    command_log: Log
    committer: Committer
    attempts: Attempts
    delivery: Deliveries


@dataclass(order=True, frozen=True, slots=True)
class _Alarm:
    at_ms: int
    order: int
    place: Place = field(compare=False)
    due: Due = field(compare=False)


class Worker:
    """See the module. Everything is called from one thread."""

    def __init__(self, config: WorkerConfig, edges: Edges, rng: Random) -> None:
        self._config, self._edges, self._rng = config, edges, rng
        self._holdings = Holdings(config.routes, edges.answers, edges.state_log, edges.command_log)
        self._alarms: list[_Alarm] = []
        self._orders = itertools.count()
        self._waiting = 0
        self._setback: str | None = None
        self._pause = threading.Event()
        self._inputs_max = config.inputs_max
        self._aborts = 0
        self._first = 0
        self._draining = False

    @property
    def in_flight(self) -> int:
        """Attempts under way."""
        return self._edges.attempts.in_flight

    @property
    def busy(self) -> bool:
        """Whether attempts are under way, or came to an end that is not recorded yet."""
        return self.in_flight > 0 or any(held.results for held in self._holdings.held.values())

    @property
    def live_partitions(self) -> frozenset[int]:
        """Partitions this executor claims runs of."""
        return frozenset(held.number for held in self._holdings.live())

    def drain(self) -> None:
        """Claim nothing more; what is under way goes on and is recorded."""
        self._draining = True

    def wait(self, wait_s: float) -> None:
        """Read commands; wait at most ``wait_s`` for something to do, when there is nothing.

        Apart from `step`, so that the clock is read after the wait and not before it.
        """
        if self._setback is not None:
            self._pause.wait(wait_s)
        waiting = 0.0 if self._has_work() else wait_s
        backlog_max = self._config.backlog_max
        if self._draining or not self._room() or self._holdings.backlog() > backlog_max:
            self._edges.attempts.ended.wait(waiting)
        else:
            self._holdings.read(backlog_max, waiting)

    def step(self, now_ms: int, monotonic_ms: int) -> None:
        """One round, without waiting."""
        self._serve_group()
        for held in self._holdings.advance():
            self._inherit(held, monotonic_ms)
        self._collect(monotonic_ms)
        self._commit(now_ms, monotonic_ms)

    # ---- partitions --------------------------------------------------------------------------

    def _serve_group(self) -> None:
        change = self._edges.group.poll(0.0)
        gone = change.revoked | change.lost
        if gone:
            cancelled = sum(self._edges.attempts.stop_all(number) for number in gone)
            self._holdings.give_up(gone)
            log.info(events.PARTITIONS_GONE, partitions=sorted(gone), cancelled=cancelled)
        if change.assigned:
            self._holdings.take(change.assigned)
            log.info(events.PARTITIONS_ASSIGNED, partitions=sorted(change.assigned))

    def _inherit(self, held: Held, monotonic_ms: int) -> None:
        """Give every open run that nobody here works on its time before the next attempt."""
        speaking = {(ended.run_id, ended.attempt) for ended in held.results}
        inherited = 0
        for run in held.state.every_open_run():
            here = self._edges.attempts.is_under_way(run.run_id, run.attempt)
            if run.phase is Phase.RETRYING or here or (run.run_id, run.attempt) in speaking:
                continue
            inherited += 1
            due = Due(run.run_id, run.attempt, Event.TAKEN_OVER)
            self._set_alarm(monotonic_ms + self._config.inherit_ms, held.place, due)
        log.debug(events.PARTITION_LIVE, partition=held.number, position=held.position,
                  values=len(held.state), inherited=inherited)  # fmt: skip

    # ---- inputs ------------------------------------------------------------------------------

    def _collect(self, monotonic_ms: int) -> None:
        for ended in self._edges.attempts.drain():
            held = self._held_at(ended.place)
            if held is not None:
                held.results.append(ended)
        while self._alarms and self._alarms[0].at_ms <= monotonic_ms:
            alarm = heapq.heappop(self._alarms)
            self._waiting -= alarm.due.event is Event.DUE
            held = self._held_at(alarm.place)
            if held is not None:
                held.dues.append(alarm.due)

    def _has_work(self) -> bool:
        room = self._room()
        return any(held.results or (room and (held.dues or held.inbox))
                   for held in self._holdings.live())  # fmt: skip

    def _room(self) -> int:
        if self._draining:
            return 0
        used = self._edges.attempts.in_flight + self._waiting
        return max(0, self._config.max_in_flight - used)

    def _held_at(self, place: Place) -> Held | None:
        held = self._holdings.held.get(place[0])
        return held if held is not None and held.epoch == place[1] else None

    def _set_alarm(self, at_ms: int, place: Place, due: Due) -> None:
        self._waiting += due.event is Event.DUE
        heapq.heappush(self._alarms, _Alarm(at_ms, next(self._orders), place, due))

    # ---- the transaction ----------------------------------------------------------------------

    def _commit(self, now_ms: int, monotonic_ms: int) -> None:
        batch = build(self._in_turn(), self._context(now_ms), self._inputs_max, self._room())
        if not batch.shares:
            return
        try:
            with self._edges.group.fence() as fence:
                outcome = self._edges.committer.commit(fence, batch.records(), batch.offsets())
        except FencedError as error:
            outcome = Aborted(str(error), fenced=True)
        self._conclude(batch, outcome, monotonic_ms)

    def _in_turn(self) -> list[Held]:
        """Live partitions, beginning with another one each time: none is always first."""
        live = self._holdings.live()
        self._first = (self._first + 1) % max(1, len(live))
        return live[self._first :] + live[: self._first]

    def _context(self, now_ms: int) -> Context:
        config = self._config
        return Context(now_ms, config.instance, config.routes, self._rng, self._edges.delivery,
                       config.soon_ms)  # fmt: skip

    def _conclude(self, batch: Batch, outcome: Outcome, monotonic_ms: int) -> None:
        match outcome:
            case Committed():
                self._aborts, self._setback = 0, None
                self._inputs_max = min(2 * self._inputs_max, self._config.inputs_max)
                for share in batch.shares:
                    self._apply(share, monotonic_ms)
            case Aborted(reason=reason, fenced=fenced):
                self._note_abort(batch, reason, fenced=fenced)
                self._drop(batch.shares)
                if not fenced:
                    self._narrow(batch, reason)
            case Uncertain(reason=reason):
                numbers = [share.held.number for share in batch.shares]
                log.warning(events.TRANSACTION_UNCERTAIN, reason=reason, partitions=numbers)
                self._holdings.retake(numbers)

    def _apply(self, share: Share, monotonic_ms: int) -> None:
        """The transaction is committed: take its inputs, change state, start and stop."""
        held = share.held
        held.position = held.offset_after(share.commands)
        for queue, count in ((held.results, share.results), (held.dues, share.dues),
                             (held.inbox, share.commands)):  # fmt: skip
            for _ in range(count):
                queue.popleft()
        for change in share.draft.changes():
            held.state.apply(change)
        for run_id in share.stops:
            self._edges.attempts.stop(run_id)
        for run in share.starts:
            current = held.state.get(run.run_id)
            # The same transaction may have cancelled it, or changed what else is known of it.
            if isinstance(current, OpenRun) and current.attempt == run.attempt:
                self._edges.attempts.start(held.place, current)
        for wait in share.waits:
            due = Due(wait.run_id, wait.attempt, Event.DUE)
            self._set_alarm(monotonic_ms + wait.delay_ms, held.place, due)

    def _note_abort(self, batch: Batch, reason: str, *, fenced: bool) -> None:
        """Wait before the next try, and say so once for a reason that persists."""
        if reason != self._setback:
            log.warning(events.TRANSACTION_ABORTED, reason=reason, fenced=fenced,
                        inputs=batch.inputs)  # fmt: skip
        self._setback = reason

    def _drop(self, shares: Iterable[Share]) -> None:
        for share in shares:
            share.held.state.remember(share.forgotten)

    def _narrow(self, batch: Batch, reason: str) -> None:
        """Halve the next transactions until the input is alone that cannot be committed."""
        self._edges.delivery.doubt()
        self._inputs_max = max(1, batch.inputs // 2)
        self._aborts = self._aborts + 1 if batch.inputs == 1 else 0
        if self._aborts >= ABORTS_TOLERATED:
            self._aborts = 0
            for run_id in batch.shares[0].run_ids:
                log.error(events.RUN_POISONED, run_id=run_id, reason=reason)
                self._edges.delivery.refuse(run_id, f"its message cannot be committed: {reason}")

    def close(self, deadline_s: float) -> int:
        """Cancel what is under way and leave the group. Returns how many runs stay open: the
        next owner re-attempts them.
        """
        unfinished = self._edges.attempts.in_flight
        self._edges.attempts.close(deadline_s)
        self._edges.committer.close(deadline_s)
        self._edges.group.close(deadline_s)
        self._edges.command_log.close(deadline_s)
        self._edges.state_log.close(deadline_s)
        self._edges.answers.close(deadline_s)
        return unfinished
