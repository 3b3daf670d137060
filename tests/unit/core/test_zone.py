"""Transitions and pieces, against the files of tzdata themselves."""

import importlib.metadata
import itertools
import struct
import zoneinfo
from importlib import resources

import pytest

from scheduler.core.definition import DstGap, DstOverlap
from scheduler.core.instant import parse_instant
from scheduler.core.zone import (
    SPAN_S,
    Piece,
    offset_at,
    pieces,
    transitions,
    tzdata_version,
    zone_names,
)

_1970, _2037 = 0, 2_114_380_800


def changes_in_file(zone: str) -> list[tuple[int, int]]:
    """(second, offset after it) of each real change from 1970 to 2036, read from the TZif file.

    Source: RFC 8536, section 3; the second block has 64-bit instants.
    """
    data = resources.files("tzdata.zoneinfo").joinpath(*zone.split("/")).read_bytes()
    isut, isstd, leap, times, kinds, chars = struct.unpack(">6I", data[20:44])
    data = data[44 + times * 5 + kinds * 6 + chars + leap * 8 + isstd + isut :]
    times, kinds = struct.unpack(">2I", data[32:40])
    body = data[44:]
    seconds = struct.unpack(f">{times}q", body[: 8 * times])
    indices = body[8 * times : 9 * times]
    offsets = [
        struct.unpack(">i", body[9 * times + 6 * kind : 9 * times + 6 * kind + 4])[0]
        for kind in range(kinds)
    ]
    found, offset = [], offsets[0]
    for second, index in zip(seconds, indices, strict=True):
        if offsets[index] != offset and _1970 <= second < _2037:
            found.append((second, offsets[index]))
        offset = offsets[index]
    return found


def test_probing_finds_every_change_of_every_zone() -> None:
    for zone in sorted(zone_names()):
        expected = changes_in_file(zone)
        last = expected[-1][0] if expected else 0
        found = [(t.at_s, t.after_s) for t in transitions(zone, _1970, _2037) if t.at_s <= last]
        assert found == expected, zone


def test_no_two_changes_are_close_enough_to_reach_each_other() -> None:
    for zone in sorted(zone_names()):
        found = transitions(zone, _1970, _2037)
        for one, two in itertools.pairwise(found):
            assert two.at_s - one.at_s > 6 * 86_400, (zone, one, two)


@pytest.mark.parametrize("gap", DstGap)
@pytest.mark.parametrize("overlap", DstOverlap)
def test_pieces_cover_utc_but_for_the_passes_that_are_dropped(
    gap: DstGap, overlap: DstOverlap
) -> None:
    for zone in ("America/New_York", "Pacific/Apia", "Antarctica/Troll", "UTC"):
        for span in range(38, 60):
            found = pieces(zone, gap, overlap, span)
            # The pass an overlap loses may lie on either side of a span's border.
            lost = sum(
                _within(span, t.at_s, t.at_s - t.step_s)
                if overlap is DstOverlap.FIRST
                else _within(span, t.at_s + t.step_s, t.at_s)
                for t in transitions(zone, (span - 1) * SPAN_S, (span + 2) * SPAN_S)
                if t.step_s < 0 and overlap is not DstOverlap.BOTH
            )
            ordinary = [p for p in found if p.gap is None and _is_ordinary(zone, p)]
            assert sum(p.end_s - p.begin_s for p in ordinary) == SPAN_S - lost
            assert all(span * SPAN_S <= p.begin_s < p.end_s <= (span + 1) * SPAN_S for p in found)


def _within(span: int, begin: int, end: int) -> int:
    return max(0, min(end, (span + 1) * SPAN_S) - max(begin, span * SPAN_S))


def _is_ordinary(zone: str, piece: Piece) -> bool:
    return offset_at(zone, piece.begin_s) == piece.offset_s


def test_only_the_packaged_data_is_used() -> None:
    assert zoneinfo.TZPATH == ()
    assert tzdata_version() == importlib.metadata.version("tzdata")
    # Morocco's rule ends in September 2026, which 2025b does not know yet.
    assert offset_at("Africa/Casablanca", parse_instant("2026-12-01T12:00:00Z") // 1000) == 0
