"""Where a partition's state lies in the ordered store: keys and values, nothing else.

    j <p> <job id>                 what is known of a key: the version in force, its beginning
    c <p> <cohort>                 the cohort (canonical JSON), and where its wheel entry lies
    m <p> <cohort> <job id>        a member: valid range, definition offset, run command body
    w <p> <due> <cohort>           wheel: a cohort's next instant
    w <p> <due> ONE_SHOT <job id>  wheel: a one-shot, its run command body included
    w <p> <due> DELAYED <offset>   wheel: a delayed run, its whole run command
    w <p> <due> PURGE <job id>     wheel: forget a deleted key
    w <p> <due> PURGE 0 <command>  wheel: forget a command that was done
    r <p> <job id> 0 <offset>      delayed runs of a job (so that a deletion finds them)
    o <p> <offset>                 delayed runs by offset (so that the oldest is one seek away)
    k <p> <command id>             commands done
    p <p>                          accepted positions and cursor the above was built from

Every key begins with type and partition (2 bytes), so that one partition can be dropped as a
range. Numbers are big-endian: byte order is numeric order. ``due`` is never negative.
"""

import struct
from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.cursor import Cursor, Position, decode_cursor, encode_cursor

ONE_SHOT = bytes(16)
PURGE = bytes(15) + b"\x01"
DELAYED = b"\xff" * 16
COMMAND = b"\x00"
"""Begins the rest of a PURGE entry for a command; no job id contains it."""

_P = struct.Struct(">cH")
_WHEEL = struct.Struct(">cHQ")
_INSTANT = struct.Struct(">q")
_SPAN = struct.Struct(">qq")
_MEMBER = struct.Struct(">qqq")
_ONE_SHOT = struct.Struct(">qq16s")
_DELAYED = struct.Struct(">qqBH")
_WAITING = struct.Struct(">QqqB")
_ENTRY = struct.Struct(">qqqqB?")
_VERSION = struct.Struct(">qqq16sqqq?")
_NONE = -(1 << 62)

MEMBER_HEAD = _MEMBER.size
unpack_member = _MEMBER.unpack_from
"""(valid_from_ms, valid_to_ms, definition_offset) of a member's value; its body follows."""


class Gone(StrEnum):
    """Why a key that is known has no version in force."""

    DELETED = "deleted"
    FINISHED = "finished"
    REFUSED = "refused"


_GONE_CODES: list[Gone | None] = [None, Gone.DELETED, Gone.FINISHED, Gone.REFUSED]


@dataclass(frozen=True, slots=True)
class Version:
    """A definition in force from ``begin_ms`` (exclusive, nominal time).

    Attributes:
        offset: offset of the user's record (``definition_offset``).
        appended_ms: its original append time.
        begin_ms: nominal instants at or before belong to the predecessor.
        cohort: digest of the cohort.
        run_at_ms: nominal instant of a one-shot, ``None`` for a recurring job.
        valid_from_ms: exclusive lower bound of its instants (beginning and ``start_at``).
        valid_to_ms: inclusive upper bound (``end_at``).
        paused: fires nothing.
        value: the definition as the user wrote it, to be written again if need be.
    """

    offset: int
    appended_ms: int
    begin_ms: int
    cohort: bytes
    run_at_ms: int | None
    valid_from_ms: int
    valid_to_ms: int
    paused: bool
    value: bytes


@dataclass(frozen=True, slots=True)
class JobEntry:
    """What a store knows of a key.

    Attributes:
        version: the version in force, if any.
        last_offset: newest record of a user that was considered (a refused one included).
        last_ms: that record's original append time.
        begin_ms: beginning of the version or of the deletion.
        deletion_offset: the last accepted deletion by a user, -1 for none.
        gone: why there is no version; ``None`` while there is one or nothing is known.
    """

    version: Version | None = None
    last_offset: int = -1
    last_ms: int = -1
    begin_ms: int = -1
    deletion_offset: int = -1
    gone: Gone | None = None


UNKNOWN = JobEntry()


# ---- keys ---------------------------------------------------------------------------------


def partition_range(kind: bytes, partition: int) -> tuple[bytes, bytes]:
    """Lower and upper bound of one kind of keys of a partition."""
    return _P.pack(kind, partition), _P.pack(kind, partition + 1)


def job_key(partition: int, job_id: bytes) -> bytes:
    """Key of what is known of a job id."""
    return _P.pack(b"j", partition) + job_id


def cohort_key(partition: int, digest: bytes) -> bytes:
    """Key of a cohort."""
    return _P.pack(b"c", partition) + digest


def member_key(partition: int, digest: bytes, job_id: bytes) -> bytes:
    """Key of a member of a cohort."""
    return _P.pack(b"m", partition) + digest + job_id


MEMBER_ID = _P.size + 16
"""Where the job id begins in a member's key."""


def member_range(partition: int, digest: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Bounds of a cohort's members whose job id sorts after ``after``."""
    prefix = _P.pack(b"m", partition) + digest
    return prefix + after + b"\x00", prefix + b"\xff"


def wheel_key(partition: int, due_ms: int, key: bytes) -> bytes:
    """Key of a wheel entry."""
    return _WHEEL.pack(b"w", partition, due_ms) + key


def wheel_position(key: bytes) -> Position:
    """(due_ms, cohort + rest) of a wheel key."""
    return _WHEEL.unpack_from(key)[2], key[_WHEEL.size :]


def resume_key(partition: int, position: Position) -> bytes:
    """First wheel key that may hold something beyond a position (a half-done cohort's own)."""
    due, resume = position
    single = resume[:16] in (ONE_SHOT, PURGE, DELAYED)
    return wheel_key(partition, due, resume if single else resume[:16])


def delayed_key(partition: int, due_ms: int, offset: int) -> bytes:
    """Wheel key of a delayed run."""
    return wheel_key(partition, due_ms, DELAYED + offset.to_bytes(8, "big"))


def offset_key(partition: int, offset: int) -> bytes:
    """Key of a delayed run by its offset."""
    return _P.pack(b"o", partition) + offset.to_bytes(8, "big")


def offset_of(key: bytes) -> int:
    """The offset in an offset key."""
    return int.from_bytes(key[_P.size :], "big")


def waiting_key(partition: int, job_id: bytes, offset: int) -> bytes:
    """Key of a delayed run by its job."""
    return _P.pack(b"r", partition) + job_id + b"\x00" + offset.to_bytes(8, "big")


def waiting_range(partition: int, job_id: bytes) -> tuple[bytes, bytes]:
    """Bounds of the delayed runs of a job."""
    prefix = _P.pack(b"r", partition) + job_id
    return prefix + b"\x00", prefix + b"\x01"


def waiting_id(key: bytes) -> tuple[bytes, int]:
    """(job id, offset) of a waiting key."""
    return key[_P.size : -9], int.from_bytes(key[-8:], "big")


def command_key(partition: int, command_id: str) -> bytes:
    """Key of a command that was done."""
    return _P.pack(b"k", partition) + command_id.encode()


def meta_key(partition: int) -> bytes:
    """Key of a partition's positions."""
    return _P.pack(b"p", partition)


# ---- values -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CohortEntry:
    """A cohort of a partition.

    Attributes:
        since_ms: no member has a pending instant at or before this one (nominal).
        next_ms: the nominal instant of its wheel entry, the first after ``since_ms``;
            `FOREVER_MS` where the schedule has ended.
        cohort: the cohort, encoded.
    """

    since_ms: int
    next_ms: int
    cohort: bytes


def encode_cohort(entry: CohortEntry) -> bytes:
    """Value under a cohort's key."""
    return _SPAN.pack(entry.since_ms, entry.next_ms) + entry.cohort


def decode_cohort(value: bytes) -> CohortEntry:
    """Inverse of `encode_cohort`."""
    since, following = _SPAN.unpack_from(value)
    return CohortEntry(since, following, value[_SPAN.size :])


def encode_instant(nominal_ms: int) -> bytes:
    """Value of a cohort's wheel entry: its nominal instant, epoch ms."""
    return _INSTANT.pack(nominal_ms)


def decode_instant(value: bytes) -> int:
    """Inverse of `encode_instant`."""
    return int(_INSTANT.unpack(value)[0])


def encode_member(valid_from_ms: int, valid_to_ms: int, offset: int, body: bytes) -> bytes:
    """Value of a member; `unpack_member` reads its head."""
    return _MEMBER.pack(valid_from_ms, valid_to_ms, offset) + body


def encode_one_shot(nominal_ms: int, offset: int, cohort: bytes, body: bytes) -> bytes:
    """Value of a one-shot's wheel entry."""
    return _ONE_SHOT.pack(nominal_ms, offset, cohort) + body


def decode_one_shot(value: bytes) -> tuple[int, int, bytes, bytes]:
    """(nominal_ms, definition_offset, cohort digest, body)."""
    nominal, offset, cohort = _ONE_SHOT.unpack_from(value)
    return nominal, offset, cohort, value[_ONE_SHOT.size :]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A delayed run in the wheel: a whole run command, held until it is due.

    Attributes:
        ours: written by the scheduler (an instant waiting for its jitter at an edit), so
            that no other record tells executors that it is still to come.
    """

    job_id: bytes
    nominal_ms: int
    definition_offset: int
    ours: bool
    queue: str
    command: bytes


def encode_waiting(waiting: Waiting) -> bytes:
    """Value of a delayed run's wheel entry."""
    queue = waiting.queue.encode()
    head = _DELAYED.pack(waiting.nominal_ms, waiting.definition_offset,
                         waiting.ours, len(queue))  # fmt: skip
    return head + bytes([len(waiting.job_id)]) + waiting.job_id + queue + waiting.command


def decode_waiting(value: bytes) -> Waiting:
    """Inverse of `encode_waiting`."""
    nominal, offset, ours, queue_bytes = _DELAYED.unpack_from(value)
    at = _DELAYED.size + 1
    end = at + value[_DELAYED.size]
    queue_end = end + queue_bytes
    return Waiting(value[at:end], nominal, offset, bool(ours),
                   value[end:queue_end].decode(), value[queue_end:])  # fmt: skip


def encode_waiting_index(due_ms: int, waiting: Waiting) -> bytes:
    """Value under a waiting key."""
    return _WAITING.pack(due_ms, waiting.nominal_ms, waiting.definition_offset, waiting.ours)


def decode_waiting_index(value: bytes) -> tuple[int, int, int, bool]:
    """(due_ms, nominal_ms, definition_offset, ours)."""
    due, nominal, offset, ours = _WAITING.unpack(value)
    return due, nominal, offset, bool(ours)


def encode_entry(entry: JobEntry) -> bytes:
    """Value of what is known of a job id."""
    head = _ENTRY.pack(entry.last_offset, entry.last_ms, entry.begin_ms, entry.deletion_offset,
                       _GONE_CODES.index(entry.gone), entry.version is not None)  # fmt: skip
    version = entry.version
    if version is None:
        return head
    run_at = _NONE if version.run_at_ms is None else version.run_at_ms
    middle = _VERSION.pack(version.offset, version.appended_ms, version.begin_ms, version.cohort,
                           run_at, version.valid_from_ms, version.valid_to_ms,
                           version.paused)  # fmt: skip
    return head + middle + version.value


def decode_entry(value: bytes | None) -> JobEntry:
    """Inverse of `encode_entry`; `UNKNOWN` for an absent key."""
    if value is None:
        return UNKNOWN
    last, last_ms, begin, deletion, gone, has_version = _ENTRY.unpack_from(value)
    version = None
    if has_version:
        offset, appended, starts, cohort, run_at, valid_from, valid_to, paused = (
            _VERSION.unpack_from(value, _ENTRY.size)
        )
        version = Version(offset, appended, starts, cohort, None if run_at == _NONE else run_at,
                          valid_from, valid_to, paused,
                          value[_ENTRY.size + _VERSION.size :])  # fmt: skip
    return JobEntry(version, last, last_ms, begin, deletion, _GONE_CODES[gone])


@dataclass(frozen=True, slots=True)
class PartitionMeta:
    """What the stored state of a partition was built from.

    Attributes:
        position: next offset of ``jobs[p]``; all before it is applied.
        cursor: the cursor, its other positions included.
        caught_up_ms: when the store had last applied all that was accepted, epoch ms.
    """

    position: int
    cursor: Cursor
    caught_up_ms: int


def encode_meta(meta: PartitionMeta) -> bytes:
    """Value of a partition's positions."""
    head = struct.pack(">qq", meta.position, meta.caught_up_ms)
    return head + encode_cursor(meta.cursor).encode()


def decode_meta(value: bytes | None) -> PartitionMeta | None:
    """Inverse of `encode_meta`; ``None`` when absent or not readable (rebuild then)."""
    if value is None or len(value) < 16:
        return None
    position, caught_up = struct.unpack_from(">qq", value)
    cursor = decode_cursor(value[16:].decode("ascii", "replace"))
    return None if cursor is None else PartitionMeta(position, cursor, caught_up)
