"""Every golden case: what fires when, what is refused and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.cron import CronError, normalise
from scheduler.core.preview import evaluate_case

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "cron"

DONE_RIGHT = {"reject-policy-005", "reject-policy-006", "reject-policy-007", "reject-policy-008"}
"""Refused by engines that get them wrong; here they fire as ``days-or-special`` says."""


def cases(name: str) -> list[Any]:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    return [pytest.param(case, id=case["id"]) for case in map(json.loads, lines)]


@pytest.mark.parametrize("case", cases("vectors.jsonl"))
def test_fires_at(case: dict[str, Any]) -> None:
    assert evaluate_case(case) == {"id": case["id"], "instants": case["expect"]}


@pytest.mark.parametrize("case", cases("vectors.jsonl"))
def test_auto_is_the_pair_that_the_case_names(case: dict[str, Any]) -> None:
    if not case["auto"]:
        case = {**case, "expect": case["expect"][:0], "count": 0}
    answer = evaluate_case({**case, "gap_policy": "auto", "overlap_policy": "auto"})
    assert answer["instants"] == case["expect"]


@pytest.mark.parametrize("case", cases("reject.jsonl"))
def test_is_refused(case: dict[str, Any]) -> None:
    if case["id"] in DONE_RIGHT:
        assert any("croniter loses" in w for w in normalise(case["expr"]).warnings)
        return
    with pytest.raises(CronError) as refusal:
        normalise(case["expr"])
    assert refusal.value.kind == case["expect_error"]
    assert len(refusal.value.reason) < 300
