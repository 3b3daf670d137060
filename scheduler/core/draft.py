"""A decision in the making: one partition's share of one transaction.

A draft collects what the transaction will do (runs to dispatch, records to write, changes to
the store) while the rules look at one record or one wheel entry after another. Nothing of it
has happened until the transaction commits; an aborted draft is simply dropped.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from scheduler.core.command import command_head, command_tail
from scheduler.core.cursor import WHOLE, Cursor, Position
from scheduler.core.definition import Cohort
from scheduler.core.instant import format_instant
from scheduler.core.intake import DelayedRun
from scheduler.core.layout import (
    JobEntry,
    Waiting,
    cohort_key,
    decode_cohort,
    decode_entry,
    encode_entry,
    job_key,
)
from scheduler.core.ports import Decoder, OrderedStore
from scheduler.core.records import Dispatch, Outgoing
from scheduler.core.reports import Fact, Undispatched, status_value, undispatched_value
from scheduler.core.routes import Routes
from scheduler.core.staging import Staging
from scheduler.errors import present

Facts = Callable[[bytes], Fact | None]
"""Looks up what ``cursors`` says of a job id."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What does not change while a shard lives.

    Attributes:
        catch_up_ms: a cursor further behind moves only after everything readable was accepted.
        collect_after_ms: how long after its run a one-shot's definition stays.
        outage_ms: the outage that is promised to be harmless; ``min.compaction.lag`` is twice.
        forget_ms: how long a deleted key is remembered (longer than any delayed run waits).
    """

    routes: Routes = field(default_factory=Routes)
    catch_up_ms: int = 60_000
    collect_after_ms: int = 10_000
    outage_ms: int = 24 * 3_600_000
    forget_ms: int = 8 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Due:
    """One instant to be dispatched.

    Attributes:
        settled_below_ms: every earlier nominal instant of the job is settled; ``None``: no promise.
        command_id: of a manual run.
    """

    nominal_ms: int
    effective_ms: int
    trigger: str
    settled_below_ms: int | None = None
    command_id: str | None = None


@dataclass(slots=True)
class _Miss:
    first_ms: int
    through_ms: int
    count: int
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What a partition's decisions stand on.

    Attributes:
        facts: what ``cursors`` says of a job id of this partition.
    """

    partition: int
    store: OrderedStore
    decoder: Decoder
    facts: Facts
    setting: Setting


class Draft:
    """Accumulates one partition's decision. See `Shard.decide` for the order of things."""

    def __init__(self, context: Context, cursor: Cursor, now_ms: int) -> None:
        self.partition = context.partition
        self.decoder = context.decoder
        self.facts = context.facts
        self.setting = context.setting
        self.before: Position = cursor.position
        self.until: Position = cursor.position
        self.now_ms = now_ms
        self._store = context.store
        self.stage = Staging(context.store)
        self.joined: dict[bytes, int] = {}
        self.records: list[Outgoing] = []
        self.accepted: set[bytes] = set()
        self.deleted: set[bytes] = set()
        self.held: list[tuple[bytes, int, int]] = []
        self.fresh: set[bytes] = set()
        self.waiting_offsets: list[int] = []
        self.runs = 0
        self.steps = 0
        self._messages: defaultdict[str, list[tuple[bytes, bytes]]] = defaultdict(list)
        self._missed: dict[tuple[bytes, int, str, str, int], _Miss] = {}
        self._stretch: defaultdict[bytes, int] = defaultdict(int)
        self._entries: dict[bytes, JobEntry] = {}

    # ---- what is known -----------------------------------------------------------------

    def entry(self, job_id: bytes) -> JobEntry:
        """What is known of a key, this draft's changes included."""
        known = self._entries.get(job_id)
        if known is None:
            known = decode_entry(self.stage.get(job_key(self.partition, job_id)))
            self._entries[job_id] = known
        return known

    def look_up(self, job_ids: Iterable[bytes]) -> None:
        """Read what is known of many keys at once (a third of the cost of one by one)."""
        names = [name for name in dict.fromkeys(job_ids) if name not in self._entries]
        values = self._store.get_many([job_key(self.partition, name) for name in names])
        self._entries.update(zip(names, map(decode_entry, values), strict=True))

    def set_entry(self, job_id: bytes, entry: JobEntry | None) -> None:
        """Replace what is known of a key; ``None`` forgets it."""
        self._entries[job_id] = entry or JobEntry()
        key = job_key(self.partition, job_id)
        if entry is None:
            self.stage.delete(key)
        else:
            self.stage.put(key, encode_entry(entry))

    def cohort(self, digest: bytes) -> Cohort:
        """A cohort of this partition by its digest."""
        value = self.stage.get(cohort_key(self.partition, digest))
        where = f"cohort {digest.hex()} of partition {self.partition}"
        return cohort_of(decode_cohort(present(value, f"{where} is gone")).cohort)

    # ---- what is to be done -------------------------------------------------------------

    def messages(self, queue: str) -> list[tuple[bytes, bytes]]:
        """The (key, value) pairs to dispatch to a queue, to be appended to."""
        return self._messages[self.setting.routes.runs(queue)]

    def send(self, job_id: bytes, queue: str, body: bytes, due: Due) -> None:
        """Dispatch one run."""
        scheduled_at = format_instant(due.nominal_ms)
        settled = None if due.settled_below_ms is None else format_instant(due.settled_below_ms)
        head = command_head(scheduled_at, format_instant(due.effective_ms), due.trigger, settled,
                            command_id=due.command_id)  # fmt: skip
        tail = command_tail(scheduled_at, due.command_id)
        self.messages(queue).append((job_id, head + body + tail))
        self._stretch[job_id] += 1
        self.runs += 1

    def to_runs(self, job_id: bytes, queue: str, value: bytes) -> None:
        """A ready value for the run topic (delayed runs, cancels, deletions)."""
        self.messages(queue).append((job_id, value))
        self.runs += 1

    def miss(
        self, job_id: bytes, offset: int, nominal_ms: int, reason: str, status: str = "missed"
    ) -> None:
        """Record an instant that is not dispatched; consecutive ones share a record.

        Instants of a job come in ascending order; one that is sent ends the stretch.
        """
        self.runs += 1
        stretch = (job_id, offset, status, reason, self._stretch[job_id])
        known = self._missed.get(stretch)
        if known is None:
            self._missed[stretch] = _Miss(nominal_ms, nominal_ms, 1)
            return
        known.first_ms = min(known.first_ms, nominal_ms)
        known.through_ms = max(known.through_ms, nominal_ms)
        known.count += 1

    def miss_delayed(self, run: DelayedRun | Waiting) -> None:
        """Record a delayed run that a deletion made void.

        Alone, for its neighbours may have run, and with the attempts it has had.
        """
        self.runs += 1
        self._stretch[run.job_id] += 1
        key = (run.job_id, run.definition_offset, "missed", "deleted", self._stretch[run.job_id])
        made = int(json.loads(run.command)["attempt"]) - 1
        self._missed[key] = _Miss(run.nominal_ms, run.nominal_ms, 1, made)
        self._stretch[run.job_id] += 1

    def delay(self, run: DelayedRun, value: bytes) -> None:
        """Hand an instant of a replaced version over to ``runs-retry``."""
        routes = self.setting.routes
        self.records.append(Outgoing(routes.retries, self.partition, run.job_id, value))
        self.held.append((run.job_id, run.nominal_ms, 1))

    def status(self, key: bytes, state: str, **parts: object) -> None:
        """Tell ``job-status`` about a key (parts as in `status_value`)."""
        routes = self.setting.routes
        value = status_value(spell(key), state, self.now_ms, **parts)  # type: ignore[arg-type]
        partition = self.decoder.partition(key) % routes.run_partitions
        self.records.append(Outgoing(routes.status, partition, key, value))

    # ---- the result ----------------------------------------------------------------------

    def dispatches(self) -> list[Dispatch]:
        """The run commands, one batch a topic."""
        partition = self.partition % self.setting.routes.run_partitions
        return [Dispatch(topic, partition, pairs) for topic, pairs in self._messages.items()
                if pairs]  # fmt: skip

    def history(self) -> list[Outgoing]:
        """Records of the instants that were not dispatched."""
        routes = self.setting.routes
        partition = self.partition % routes.run_partitions
        out = []
        for (job_id, offset, status, reason, _), missed in self._missed.items():
            span = Undispatched(
                missed.first_ms, missed.through_ms, missed.count, status, reason, missed.attempt
            )
            value = undispatched_value(spell(job_id), offset, span, self.now_ms)
            key = f"{spell(job_id)}@{format_instant(missed.first_ms)}".encode()
            out.append(Outgoing(routes.history, partition, key, value))
        return out


@lru_cache(maxsize=65_536)
def cohort_of(encoded: bytes) -> Cohort:
    """A cohort by its canonical JSON."""
    return Cohort.decode(encoded)


def spell(key: bytes) -> str:
    """A key as text, whatever its bytes: what is not printable ASCII is escaped.

    >>> spell(b"a\\xff")
    'a\\\\xff'
    """
    return key.decode("ascii", "backslashreplace")


def end_of(due_ms: int, key: bytes, whole: bool) -> Position:
    """The position up to which a wheel entry reaches; ``whole`` for all members of a cohort."""
    return (due_ms, key + WHOLE[:1]) if whole else (due_ms, key)
