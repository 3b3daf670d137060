"""Next instants of a job, from its definition alone."""

from typing import Any

import pytest

from scheduler.cli.upcoming import upcoming
from scheduler.cli.views import JobView
from scheduler.core.instant import format_instant, parse_instant

NOW_MS = parse_instant("2026-11-30T09:00:02.500Z")


def _upcoming(count: int = 3, state: str = "active", **definition: Any) -> list[str]:
    view = JobView("a", definition, 0, {"state": state})
    return [format_instant(ms)[:19] for ms in upcoming(view, NOW_MS, count)]


def test_an_interval_is_counted_from_its_anchor() -> None:
    assert _upcoming(every="PT10S", start_at="2026-11-30T09:00:01Z") == [
        "2026-11-30T09:00:11",
        "2026-11-30T09:00:21",
        "2026-11-30T09:00:31",
    ]


def test_a_schedule_is_read_in_its_zone() -> None:
    assert _upcoming(1, schedule="0 2 * * *", time_zone="Europe/Istanbul") == [
        "2026-11-30T23:00:00"
    ]


def test_the_start_itself_counts_and_nothing_follows_the_end() -> None:
    assert _upcoming(
        schedule="0 * * * *", start_at="2026-12-01T00:00:00Z", end_at="2026-12-01T01:00:00Z"
    ) == ["2026-12-01T00:00:00", "2026-12-01T01:00:00"]


def test_a_one_shot_is_due_once() -> None:
    assert _upcoming(run_at="2026-11-30T09:00:03Z") == ["2026-11-30T09:00:03"]
    assert _upcoming(run_at="2026-11-30T09:00:02Z") == []


@pytest.mark.parametrize(
    "view",
    [
        JobView("a", {"every": "PT5S", "paused": True}, 0, {"state": "paused"}),
        JobView("a", {"run_at": "2026-12-30T09:00:03Z"}, 0, {"state": "finished"}),
        JobView("a", None, None, {"state": "rejected"}),
        JobView("a", {"every": "nonsense"}, 0, None),
    ],
)
def test_some_jobs_have_no_next_instant(view: JobView) -> None:
    assert upcoming(view, NOW_MS, 3) == []


def test_jitter_moves_every_instant_by_the_same() -> None:
    plain = upcoming(JobView("a", {"every": "PT1H"}, 0), NOW_MS, 1)
    moved = upcoming(JobView("a", {"every": "PT1H", "jitter_seconds": 600}, 0), NOW_MS, 3)
    assert (moved[0] - plain[0]) % 3_600_000 <= 600_000
    assert moved[1] - moved[0] == moved[2] - moved[1] == 3_600_000
