"""Garbage collection of finished one-shots.

A one-shot is finished by the cursor itself. Its wheel entry stays behind the cursor, so the
entries there are exactly the one-shots whose definitions may go; nothing else has to be
remembered. Their tombstones are guarded: a definition produced meanwhile makes them void.
"""

from scheduler.core.cursor import Position
from scheduler.core.draft import Draft
from scheduler.core.guard import Guard, Why, guard_headers
from scheduler.core.layout import ONE_SHOT, resume_key, wheel_key, wheel_position
from scheduler.core.records import Outgoing
from scheduler.core.settle import one_shot_key

_MOST = 200
"""Tombstones of one partition in one transaction: they must not stand in front of runs."""


def collect(draft: Draft, after: Position, skip: set[bytes]) -> Position:
    """Write tombstones for one-shots that ran a while ago.

    Args:
        after: entries up to here have theirs already.
        skip: keys that other records of this transaction act on.

    Returns:
        The position up to which entries have been dealt with.
    """
    upto = min(draft.now_ms, draft.before[0]) - draft.setting.collect_after_ms
    if upto <= after[0]:
        return after
    lower, upper = resume_key(draft.partition, after), wheel_key(draft.partition, upto, b"")
    pairs = draft.stage.scan(lower, upper, _MOST)
    for wheel, _ in pairs:
        due, rest = wheel_position(wheel)
        if rest[:16] == ONE_SHOT and (due, rest) > after and rest[16:] not in skip:
            _finish(draft, wheel, rest[16:])
    return wheel_position(pairs[-1][0]) if len(pairs) == _MOST else (upto - 1, b"\xff" * 32)


def _finish(draft: Draft, wheel: bytes, key: bytes) -> None:
    entry = draft.entry(key)
    version = entry.version
    if version is None or version.run_at_ms is None or one_shot_key(draft, key, version) != wheel:
        draft.stage.delete(wheel)
        return
    guard = Guard(entry.last_offset, version.offset, version.appended_ms, Why.FINISHED)
    jobs = draft.setting.routes.jobs
    draft.records.append(Outgoing(jobs, draft.partition, key, None, guard_headers(guard)))
    draft.status(key, "finished", definition_offset=version.offset,
                 effective_from_ms=version.begin_ms)  # fmt: skip
