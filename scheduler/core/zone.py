"""Time zones, from the pinned ``tzdata`` package alone.

zoneinfo prefers the system's copy, so two workers on different images would disagree about
09:00 in Casablanca and dispatch one run twice. Importing this module takes the system's copy
out of zoneinfo's search path for the whole process.

Theory of operation
-------------------
The question "when does this wall time occur?" has no, one or two answers. Instead of asking it
for every wall time, UTC is cut into *pieces* in which wall time is UTC plus a constant, and the
gap and overlap policies decide once which pieces exist:

* overlap at T, clock set back by d: the wall shows [T, T + d) again what it showed in
  [T - d, T). ``first`` drops the second pass, ``last`` the first, ``both`` neither.
* gap at T, clock set forward by d: ``skip`` adds nothing; ``shift`` adds the piece [T, T + d)
  under the old offset; ``run_after`` adds one instant, T, if any wall time of the gap matches.

Within a piece order on the wall is order in UTC, so the next instant is the next wall match.
Worked example, New York, 2026-11-01, set back at 06:00Z: pieces [.., 06:00Z) at -4 h and
[06:00Z, ..) at -5 h; under ``first`` the second begins at 07:00Z.

Transitions are found by probing utcoffset (never dst(), which moves without the clock moving,
and rests while it moves). Instants are whole UTC seconds since the epoch.
"""

import importlib.metadata
import zoneinfo
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from scheduler.core.definition import DstGap, DstOverlap

SPAN_S: Final = 1 << 25
"""Pieces are made for spans of about 388 days."""

SECOND_MIN: Final = -2_208_988_800
"""1900-01-01T00:00:00Z: earlier instants are not looked at."""

SECOND_MAX: Final = 253_300_000_000
"""In the year 9996: no later span is looked at, so that `datetime` can show all of it."""

SHIFT_S_MAX: Final = 86_400
"""Greatest offset and greatest step of a clock (the date line: Apia, Kwajalein)."""

_PROBE_S: Final = 5 * 86_400
"""Closer than any two transitions of a zone (least: 6.96 days, Gaza and Recife 2000), so that
between two probes there is at most one. A test compares with the files of tzdata."""

_REACH_S: Final = 2 * SHIFT_S_MAX
"""How far a transition's effects reach, on either side, with room."""

zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()


@dataclass(frozen=True, slots=True)
class Transition:
    """The clock changes at ``at_s`` from offset ``before_s`` to ``after_s`` (seconds east)."""

    at_s: int
    before_s: int
    after_s: int

    @property
    def step_s(self) -> int:
        """Positive: a gap of so many seconds. Negative: an overlap."""
        return self.after_s - self.before_s


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of UTC in which wall time is UTC plus a constant.

    Attributes:
        begin_s, end_s: first second, and the one after the last.
        offset_s: wall second minus UTC second.
        alone_s: from here to the end no other piece overlaps this one.
        gap: wall seconds (first, one after the last) that do not exist; the piece is then one
            instant, which matches if any of them does.
    """

    begin_s: int
    end_s: int
    offset_s: int
    alone_s: int
    gap: tuple[int, int] | None = None


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """Version of the time zone data, e.g. ``2026.6``; recorded with the cursor."""
    return importlib.metadata.version("tzdata")


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """All zones of the tzdata package."""
    return frozenset(zoneinfo.available_timezones())


def offset_at(zone: str, second: int) -> int:
    """Offset of a zone at a UTC second, in seconds east.

    >>> offset_at("Europe/Berlin", 1_775_000_000)
    7200
    """
    return _offset(zoneinfo.ZoneInfo(zone), second)


@lru_cache(maxsize=4096)
def pieces(zone: str, gap: DstGap, overlap: DstOverlap, span: int) -> tuple[Piece, ...]:
    """Pieces of the span [span * SPAN_S, (span + 1) * SPAN_S), by their first second.

    Cost: about 0.1 ms; kept for the 4,096 used last.
    """
    low, high = span * SPAN_S, (span + 1) * SPAN_S
    changes = transitions(zone, low - _REACH_S, high + _REACH_S)
    first = changes[0].before_s if changes else _offset(zoneinfo.ZoneInfo(zone), low)
    found = _between_changes(changes, first, gap, overlap)
    for change in changes:
        if change.step_s > 0:
            found.extend(_in_gap(change, gap))
    clipped = [
        Piece(max(p.begin_s, low), min(p.end_s, high), p.offset_s, max(p.alone_s, low), p.gap)
        for p in found
        if p.begin_s < high and low < p.end_s
    ]
    return tuple(sorted(clipped, key=lambda p: (p.begin_s, p.end_s)))


@lru_cache(maxsize=4096)
def transitions(zone: str, low_s: int, high_s: int) -> tuple[Transition, ...]:
    """Changes of a zone's offset in [low_s, high_s), ascending.

    >>> [t.step_s for t in transitions("Europe/Berlin", 1_767_225_600, 1_798_761_600)]
    [3600, -3600]
    """
    info = zoneinfo.ZoneInfo(zone)
    found = []
    known_s, known = low_s - 1, _offset(info, low_s - 1)
    while known_s < high_s - 1:
        probe_s = min(known_s + _PROBE_S, high_s - 1)
        probe = _offset(info, probe_s)
        if probe != known:
            found.append(Transition(_change(info, known_s, probe_s), known, probe))
        known_s, known = probe_s, probe
    return tuple(found)


def _between_changes(
    changes: tuple[Transition, ...], first: int, gap: DstGap, overlap: DstOverlap
) -> list[Piece]:
    """The ordinary pieces, less the pass of each overlap that the policy drops."""
    found = []
    begin, alone, offset = -(1 << 62), -(1 << 62), first
    for change in changes:
        back = max(-change.step_s, 0)
        end = change.at_s - (back if overlap is DstOverlap.LAST else 0)
        if begin < end:
            found.append(Piece(begin, end, offset, alone))
        offset = change.after_s
        begin = change.at_s + (back if overlap is DstOverlap.FIRST else 0)
        alone = begin + _shared(change, gap)
    found.append(Piece(begin, 1 << 62, offset, alone))
    return found


def _shared(change: Transition, gap: DstGap) -> int:
    """Seconds after a change in which another piece lies over the ordinary one."""
    if change.step_s < 0 or gap is DstGap.SKIP:
        return 0
    return change.step_s if gap is DstGap.SHIFT else 1


def _in_gap(change: Transition, gap: DstGap) -> list[Piece]:
    at = change.at_s
    if gap is DstGap.SHIFT:
        end = at + change.step_s
        return [Piece(at, end, change.before_s, end)]
    if gap is DstGap.RUN_AFTER:
        hole = (at + change.before_s, at + change.after_s)
        return [Piece(at, at + 1, change.before_s, at + 1, hole)]
    return []


def _change(info: zoneinfo.ZoneInfo, low_s: int, high_s: int) -> int:
    """First second of the offset at ``high_s``, which differs from the one at ``low_s``."""
    new = _offset(info, high_s)
    while high_s - low_s > 1:
        middle = (low_s + high_s) // 2
        if _offset(info, middle) == new:
            high_s = middle
        else:
            low_s = middle
    return high_s


def _offset(info: zoneinfo.ZoneInfo, second: int) -> int:
    delta = datetime.fromtimestamp(second, info).utcoffset()
    return 0 if delta is None else delta.days * 86_400 + delta.seconds
