"""Taking partitions over and giving them up; reading their run commands."""

from collections.abc import Iterable

import structlog

from executor import events
from executor.core.codec import decode_state
from executor.core.routes import ExecutorRoutes
from executor.runtime.held import Held, Stage
from executor.runtime.ports import Answers, Log
from scheduler.core.records import Incoming
from scheduler.errors import RequestError
from scheduler.kafka.positions import Position
from scheduler.kafka.reader import START

log = structlog.get_logger("executor")

RESTORE_RECORDS_MAX = 5_000
"""Read of ``run-state`` in one step: tens of milliseconds of work."""


class Holdings:
    """Every partition held, by number. Not thread-safe.

    Args:
        state_log: reads ``run-state`` of partitions being taken over.
        command_log: reads ``runs`` of live partitions.
    """

    def __init__(self, routes: ExecutorRoutes, answers: Answers, state_log: Log,
                 command_log: Log) -> None:  # fmt: skip
        self._routes = routes
        self._answers = answers
        self._state_log = state_log
        self._command_log = command_log
        self._epoch = 0
        self._restored: dict[int, int] = {}
        self.held: dict[int, Held] = {}

    def live(self) -> list[Held]:
        """Partitions that claim, by number."""
        return [held for _, held in sorted(self.held.items()) if held.stage is Stage.LIVE]

    def backlog(self) -> int:
        """Commands read and not decided."""
        return sum(len(held.inbox) for held in self.held.values())

    def take(self, partitions: Iterable[int]) -> None:
        """Begin to take partitions over; none of them is held."""
        asked = sorted(partitions)
        for number in asked:
            self._epoch += 1
            self.held[number] = Held(number, self._epoch)
        if asked:
            self._answers.request(asked)

    def retake(self, partitions: Iterable[int]) -> None:
        """Take partitions over from ourselves: whether the last transaction came through is not
        known. Their attempts go on.
        """
        asked = sorted(number for number in partitions if number in self.held)
        for number in asked:
            self._stop_reading(self.held[number])
            self.held[number].forget()
        if asked:
            self._answers.request(asked)

    def give_up(self, partitions: Iterable[int]) -> None:
        """Forget partitions; others own them."""
        for number in partitions:
            held = self.held.pop(number, None)
            if held is not None:
                self._stop_reading(held)

    def advance(self) -> list[Held]:
        """Go on with take-overs. Returns the partitions that have just become live."""
        for answer in self._answers.drain():
            self._begin_restore(answer)
        restoring = [held for held in self.held.values() if held.stage is Stage.RESTORING]
        if restoring:
            self._restore()
        ready = [held for held in restoring if self._restored_to(held) >= held.state_end]
        for held in ready:
            self._go_live(held)
        return ready

    def read(self, records_max: int, wait_s: float) -> None:
        """Read commands of live partitions into their inboxes."""
        batch = self._command_log.poll(records_max, wait_s)
        for record in batch.records:
            held = self.held.get(record.partition)
            if held is not None and held.stage is Stage.LIVE:
                held.received(record)
        for (_, number), end in batch.ends.items():
            held = self.held.get(number)
            if held is not None and held.stage is Stage.LIVE:
                held.read_to = max(end, held.read_to or 0)
        for topic, number in batch.lost:
            log.error(events.LOG_LOST, topic=topic, partition=number)
            self._command_log.remove([(topic, number)])
            self._command_log.add({(topic, number): START})

    def _begin_restore(self, answer: Position) -> None:
        held = self.held.get(answer.partition)
        if held is None or held.stage is not Stage.ASKED or not answer.stable:
            return
        place = (self._routes.run_state, held.number)
        held.stage = Stage.RESTORING
        held.position = answer.offset
        held.read_to = None
        held.state_end = answer.log_ends.get(self._routes.run_state, 0)
        self._restored[held.number] = 0
        if held.state_end:
            self._state_log.add({place: START})

    def _restore(self) -> None:
        batch = self._state_log.poll(RESTORE_RECORDS_MAX, 0.0)
        for record in batch.records:
            held = self.held.get(record.partition)
            if held is not None and held.stage is Stage.RESTORING:
                _apply(held, record)
                self._restored[held.number] = record.offset + 1
        for (_, number), end in batch.ends.items():
            self._restored[number] = max(end, self._restored.get(number, 0))
        for topic, number in batch.lost:
            # It was read from its start, so compaction cannot have overtaken it for long.
            log.error(events.LOG_LOST, topic=topic, partition=number)
            self._state_log.remove([(topic, number)])
            self._state_log.add({(topic, number): START})

    def _restored_to(self, held: Held) -> int:
        return self._restored.get(held.number, 0)

    def _go_live(self, held: Held) -> None:
        self._stop_reading(held)
        held.stage = Stage.LIVE
        position = START if held.position is None else held.position
        self._command_log.add({(self._routes.runs, held.number): position})

    def _stop_reading(self, held: Held) -> None:
        match held.stage:
            case Stage.RESTORING if held.state_end:
                self._state_log.remove([(self._routes.run_state, held.number)])
            case Stage.LIVE:
                self._command_log.remove([(self._routes.runs, held.number)])
            case _:
                pass


def _apply(held: Held, record: Incoming) -> None:
    try:
        held.state.apply(decode_state(record.key, record.value))
    except RequestError as error:
        log.error(events.STATE_UNREADABLE, partition=record.partition, offset=record.offset,
                  reason=str(error))  # fmt: skip
