"""One partition in a worker: following what was accepted elsewhere, taking over, or live.

Theory of operation. A partition this worker does not own is applied **only up to the owner's
accepted positions**: a store is never ahead of what has been accepted. What was read beyond
them waits in a bounded buffer (`Feed`). Taking over is the same work with the accepted
positions known for certain: apply up to them, bring the wheel up to the cursor, then live.

    FOLLOWING --assigned--> TAKING --positions known, all applied--> LIVE
        ^                      ^                                       |
        |                      +------ outcome uncertain or aborted ---+
        +---------------------------- revoked or lost -----------------+
"""

from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.core.absorption import absorb
from scheduler.core.cursor import WHOLE, Cursor
from scheduler.core.draft import Context, Draft
from scheduler.core.layout import (
    PartitionMeta,
    decode_meta,
    encode_meta,
    meta_key,
    partition_range,
)
from scheduler.core.placement import advance
from scheduler.core.records import Incoming
from scheduler.core.shard import Decision, Shard
from scheduler.core.staging import Staging
from scheduler.core.takeup import absorb_command, absorb_delayed
from scheduler.errors import present

KINDS = (b"j", b"c", b"m", b"w", b"r", b"o", b"k", b"p")
"""Every type of key of a partition."""

_ABSORB_CHUNK = 1_000
"""Records applied to the store in one batch (5 entries each at most)."""

_ADVANCE_CHUNK = 2_000


class State(StrEnum):
    """See the module's theory of operation."""

    FOLLOWING = "following"
    TAKING = "taking"
    LIVE = "live"


@dataclass(slots=True)
class Feed:
    """One log of a partition as far as it was read.

    Attributes:
        applied: next offset to apply to the store.
        read_to: everything below was read (markers and compaction holes included).
        end: newest end met: nothing readable lay beyond it then.
        records: read, not applied yet, ascending.
    """

    applied: int = 0
    read_to: int = 0
    end: int | None = None
    records: deque[Incoming] = field(default_factory=deque)

    def offer(self, record: Incoming) -> None:
        """Take in a record that was read; one read before is dropped."""
        if record.offset >= self.read_to:
            self.records.append(record)
            self.read_to = record.offset + 1

    def reached(self, end: int) -> None:
        """The reader met the end of the log at this offset."""
        self.read_to = max(self.read_to, end)
        self.end = max(end, self.end or 0)

    def below(self, position: int, most: int) -> list[Incoming]:
        """The first records below a position, at most so many."""
        out: list[Incoming] = []
        for record in self.records:
            if record.offset >= position or len(out) == most:
                break
            out.append(record)
        return out

    def done(self, count: int, position: int) -> None:
        """The first ``count`` records are applied; below ``position`` nothing else is left."""
        for _ in range(count):
            self.applied = self.records.popleft().offset + 1
        if not self.records or self.records[0].offset >= position:
            self.applied = max(self.applied, min(position, self.read_to))


class Partition:
    """State, feeds and (while live) the shard of one partition."""

    def __init__(self, context: Context) -> None:
        self.number = context.partition
        self.state = State.FOLLOWING
        self.shard: Shard | None = None
        self.jobs, self.commands, self.retries = Feed(), Feed(), Feed()
        self._context, self._store = context, context.store
        self._known: tuple[int, Cursor] | None = None
        self._placed: Cursor | None = None
        self._retry_end: int | None = None
        self._caught_up_ms = 0
        self._poisoned: set[tuple[str, int]] = set()

    # ---- starting ------------------------------------------------------------------------

    def restore(self, trusted_since_ms: int) -> bool:
        """Take up what the store holds of this partition.

        Args:
            trusted_since_ms: a store caught up before this may have missed deletions.

        Returns:
            Whether it is trusted; else it was dropped and is rebuilt from the log.
        """
        stored = self._store.get(meta_key(self.number))
        if stored is None:
            return False  # every write carries the meta: nothing is stored
        meta = decode_meta(stored)
        if meta is None or meta.caught_up_ms < trusted_since_ms:
            self.drop()
            return False
        cursor = meta.cursor
        for feed, offset in ((self.jobs, meta.position), (self.commands, cursor.commands),
                             (self.retries, cursor.retries)):  # fmt: skip
            feed.applied = feed.read_to = offset
        self._placed = cursor
        self._caught_up_ms = meta.caught_up_ms
        return True

    def drop(self) -> None:
        """Forget everything stored of this partition; it is read again from the start."""
        for kind in KINDS:
            self._store.drop_range(*partition_range(kind, self.number))
        self.jobs, self.commands, self.retries = Feed(), Feed(), Feed()
        self._placed = None
        self._caught_up_ms = 0
        self.shard = None

    # ---- what happens to it ----------------------------------------------------------------

    def assigned(self) -> None:
        """The group gave it to us: wait for its accepted positions."""
        self._retake()

    def revoked(self) -> None:
        """Another member owns it, or will; what it had read stays."""
        self._unlive()
        self.state = State.FOLLOWING
        self._retry_end = None

    def retake(self) -> None:
        """A transaction did not certainly commit: find out what is accepted."""
        self._retake()

    def _retake(self) -> None:
        self._unlive()
        self.state = State.TAKING
        self._known = None
        self._retry_end = None

    def _unlive(self) -> None:
        """Turn a live shard's inbox back into feeds; the store agrees with its positions."""
        shard = self.shard
        if shard is None:
            return
        for feed, records, applied in (
            (self.jobs, shard.inbox.jobs, shard.position),
            (self.commands, shard.inbox.commands, shard.cursor.commands),
            (self.retries, shard.inbox.retries, shard.cursor.retries),
        ):
            feed.records = records
            feed.applied = applied
        self._placed = shard.cursor
        self._known = (shard.position, shard.cursor)
        self.shard = None

    def accepted(self, position: int, cursor: Cursor, retry_end: int | None) -> bool:
        """What is accepted is known: the position in ``jobs[p]`` and the cursor.

        Args:
            retry_end: with a stable answer: the end of ``runs-retry[p]``, read uncommitted.

        Returns:
            Whether the store may stay; ``False``: it is ahead of what was accepted (offsets
            were reset), it has been dropped, and must be read again from the start.
        """
        if self.state is State.LIVE:
            return True
        if self.state is State.TAKING and retry_end is None:
            return True  # a standby's answer that came late
        self._known = (position, cursor)
        self._retry_end = retry_end
        if self._ahead(position, cursor):
            self.drop()
            return False
        return True

    def _ahead(self, position: int, cursor: Cursor) -> bool:
        placed = self._placed
        return (
            self.jobs.applied > position
            or self.commands.applied > cursor.commands
            or self.retries.applied > cursor.retries
            or (placed is not None and placed.position > cursor.position)
        )

    # ---- work --------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether `work` would do something now."""
        if self._known is None or self.shard is not None:
            return False
        position, cursor = self._known
        logs = ((self.jobs, position), (self.commands, cursor.commands),
                (self.retries, cursor.retries))  # fmt: skip
        if any(feed.records and feed.records[0].offset < upto for feed, upto in logs):
            return True
        return self.state is State.TAKING and all(feed.read_to >= upto for feed, upto in logs)

    def work(self, now_ms: int) -> bool:
        """Apply a chunk of what is accepted.

        Returns:
            Whether this call made a partition that is being taken over ready to go live.
        """
        if self._known is None or self.shard is not None:
            return False
        position, cursor = self._known
        absorbed = self._absorb(position, cursor, now_ms)
        if self.state is not State.TAKING or absorbed or not self._complete(position, cursor):
            return False
        return self._advance(cursor)

    def _absorb(self, position: int, cursor: Cursor, now_ms: int) -> int:
        feeds = ((self.jobs, position, absorb), (self.commands, cursor.commands, absorb_command),
                 (self.retries, cursor.retries, absorb_delayed))  # fmt: skip
        placed = self._placed or cursor
        draft = Draft(self._context, placed, now_ms)
        total = 0
        for feed, upto, take in feeds:
            records = feed.below(upto, _ABSORB_CHUNK)
            draft.look_up(record.key or b"" for record in records)
            for record in records:
                take(draft, record)
            feed.done(len(records), upto)
            total += len(records)
        if self._complete(position, cursor):
            self._caught_up_ms = now_ms
        if total:
            self._placed = placed
            self._store.write([*draft.stage.writes(), self._meta(placed)])
        return total

    def _complete(self, position: int, cursor: Cursor) -> bool:
        return (
            self.jobs.applied >= position
            and self.commands.applied >= cursor.commands
            and self.retries.applied >= cursor.retries
        )

    def _advance(self, cursor: Cursor) -> bool:
        """Bring the wheel up to the cursor, a chunk a call; whether it is there."""
        placed = self._placed or cursor
        if placed.position == cursor.position:
            self._placed = cursor
            return True
        stage = Staging(self._store)
        finished = advance(stage, self.number, cursor.position, _ADVANCE_CHUNK)
        self._placed = cursor if finished else placed
        self._store.write([*stage.writes(), self._meta(self._placed)])
        return finished

    def touch(self, now_ms: int) -> None:
        """Note in the store that a follower is caught up, so that it is still trusted after a
        crash (a live shard notes it with each decision).
        """
        known = self._known
        if self.shard is None and known is not None and self._complete(*known):
            self._caught_up_ms = now_ms
            self._store.write([self._meta(self._placed or known[1])])

    def _meta(self, placed: Cursor) -> tuple[bytes, bytes]:
        cursor = replace(placed, commands=self.commands.applied, retries=self.retries.applied)
        meta = PartitionMeta(self.jobs.applied, cursor, self._caught_up_ms)
        return meta_key(self.number), encode_meta(meta)

    @property
    def drained(self) -> bool:
        """Everything readable in the logs of this partition has been read."""
        return all(feed.end == feed.read_to for feed in (self.jobs, self.commands, self.retries))

    def poison(self, decision: Decision) -> tuple[str, int]:
        """The broker refuses what the one record of this decision leads to: refuse it instead.

        Returns:
            Its log (``jobs``, ``commands``, ``retries``) and offset.
        """
        shard = present(self.shard, "only a live partition decides")
        inbox = shard.inbox
        logs = {"jobs": inbox.jobs, "commands": inbox.commands, "retries": inbox.retries}
        (name, records), _ = next(
            pair for pair in zip(logs.items(), decision.taken, strict=True) if pair[1]
        )
        self._poisoned.add((name, records[0].offset))
        return name, records[0].offset

    def go_live(self) -> Shard:
        """Make the shard; call when `work` has said that it is ready."""
        position, cursor = present(self._known, "a take-over knows what is accepted")
        retry_end = present(self._retry_end, "a take-over knows the end of runs-retry")
        shard = Shard(self._context, position, cursor, retry_end)
        shard.inbox.jobs = self.jobs.records
        shard.inbox.commands = self.commands.records
        shard.inbox.retries = self.retries.records
        shard.poisoned = self._poisoned
        self.shard, self.state = shard, State.LIVE
        return shard


def fresh_cursor(now_ms: int, limit_ms: int, topic_id: bytes, tzdata: str) -> Cursor:
    """Where to begin when no cursor is found anywhere: never "from zero"."""
    return Cursor(now_ms - limit_ms, WHOLE, topic_id=topic_id, tzdata=tzdata)
