"""What a person who watches `duewheel up` is told of a run, and what not."""

from typing import Any

import pytest

from duewheel.follow import run_line, status_line

ROW = {"job_id": "tick", "scheduled_at": "2026-11-30T09:00:05.000Z"}


def _line(**fields: Any) -> str | None:
    return run_line({**ROW, **fields}, written_ms=0)


@pytest.mark.parametrize("status", ["queued", "running", None])
def test_what_is_on_its_way_is_no_news(status: str | None) -> None:
    assert _line(status=status) is None


def test_an_outcome_comes_with_its_lateness_or_its_reason() -> None:
    late = _line(status="succeeded", late_ms=1_500)
    assert late is not None
    assert late.split() == ["00:00:00.000", "tick", ROW["scheduled_at"], "succeeded",
                            "1.5", "s", "late"]  # fmt: skip
    missed = _line(status="missed", reason="misfire policy", late_ms=None)
    assert missed is not None
    assert missed.endswith("missed      misfire policy")
    retrying = _line(status="retrying", last_error="connection refused", late_ms=3)
    assert retrying is not None
    assert retrying.endswith("retrying    connection refused")


def test_a_refusal_is_told_with_its_reason() -> None:
    status = {"job_id": "tick", "state": "rejected", "error": "every: too short",
              "observed_at": "2026-11-30T09:00:01.000Z"}  # fmt: skip
    assert status_line(status).endswith("rejected: every: too short")
