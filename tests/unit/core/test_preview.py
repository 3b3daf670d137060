"""What a user sees of a schedule before relying on it."""

import pytest

from scheduler.core.instant import parse_instant
from scheduler.core.preview import evaluate_case, preview, spec_of


def notes(expression: str, gap: str, overlap: str, after: str) -> list[tuple[str, str | None]]:
    spec = spec_of(expression, "America/New_York", gap, overlap)
    return [(u.local, u.note) for u in preview(spec, parse_instant(after), 3)]


def test_an_ordinary_day_needs_no_note() -> None:
    assert notes("0 9 * * *", "auto", "auto", "2026-06-01T00:00:00Z") == [
        ("2026-06-01T09:00:00-04:00", None),
        ("2026-06-02T09:00:00-04:00", None),
        ("2026-06-03T09:00:00-04:00", None),
    ]


def test_both_passes_of_a_repeated_time_are_told_apart() -> None:
    assert notes("30 1 * * *", "auto", "both", "2026-10-31T12:00:00Z") == [
        ("2026-11-01T01:30:00-04:00", "this local time occurs twice; this is the first"),
        ("2026-11-01T01:30:00-05:00", "this local time occurs twice; this is the second"),
        ("2026-11-02T01:30:00-05:00", None),
    ]


@pytest.mark.parametrize(
    ("gap", "local", "note"),
    [
        ("skip", "2026-03-09T02:30:00-04:00", "02:30:00 of 2026-03-08 is skipped"),
        ("run_after", "2026-03-08T03:00:00-04:00", "02:30:00 does not exist; runs after the gap"),
        ("shift", "2026-03-08T03:30:00-04:00",
         "02:30:00 does not exist; moved by the length of the gap"),
    ],
)  # fmt: skip
def test_a_missing_time_is_explained_once(gap: str, local: str, note: str) -> None:
    found = notes("30 2 * * *", gap, "first", "2026-03-07T12:00:00Z")
    assert found[0] == (local, note)
    assert [n for _, n in found[1:]] == [None, None]


def test_a_case_has_defaults() -> None:
    case = {"id": 7, "expr": "@daily", "after": "2026-01-01T00:00:00Z"}
    answer = evaluate_case(case)
    assert answer["id"] == 7
    assert answer["instants"] == [f"2026-01-0{day}T00:00:00Z" for day in range(2, 7)]


def test_h_needs_a_job() -> None:
    case = {"id": "h", "expr": "H * * * *", "after": "2026-01-01T00:00:00Z", "count": 1}
    assert evaluate_case(case)["error"] == {
        "class": "policy",
        "message": "minute: H is chosen by the job id, and none is given here",
    }
    assert evaluate_case({**case, "job_id": "a"})["instants"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"expr": 5}, "expr"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"tz": "../../etc/passwd"}, "tz"),
        ({"after": "yesterday"}, "after"),
        ({"after": "2026-01-01T00:00:00"}, "after"),
        ({"gap_policy": "leap"}, "gap_policy"),
        ({"count": "five"}, "count"),
        ({"count": 1_000_000}, "count"),
    ],
)
def test_a_faulty_case_is_answered_not_raised(change: dict[str, object], path: str) -> None:
    case = {"id": "x", "expr": "* * * * *", "tz": "UTC", "after": "2026-01-01T00:00:00Z"} | change
    error = evaluate_case(case)["error"]
    assert isinstance(error, dict)
    assert error["class"] == "request"
    assert path in error["message"]
