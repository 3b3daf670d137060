"""What a definition compiles to."""

import hashlib
import json

import pytest

from scheduler.contract.compile import compile_job
from scheduler.contract.run import RunCommand, run_id_of
from scheduler.core.command import run_command
from scheduler.core.definition import (
    CompiledJob,
    CronSpec,
    DstGap,
    DstOverlap,
    EverySpec,
    MisfirePolicy,
    OnceSpec,
)
from scheduler.core.instant import parse_instant
from scheduler.errors import DefinitionError


def compiled(job_id: str = "job", **fields: object) -> CompiledJob:
    return compile_job(job_id, json.dumps(fields).encode(), 7)


def command(job: CompiledJob) -> RunCommand:
    return RunCommand.decode(run_command(job.body, 1_000, 3_000, "misfire", 500))


def stable(job_id: str) -> int:
    return int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:8], "big")


@pytest.mark.parametrize(
    ("schedule", "gap", "overlap"),
    [
        ("*/5 * * * *", DstGap.SKIP, DstOverlap.BOTH),
        ("0 2 * * *", DstGap.RUN_AFTER, DstOverlap.FIRST),
    ],
)
def test_auto_follows_the_shape_of_the_expression(
    schedule: str, gap: DstGap, overlap: DstOverlap
) -> None:
    spec = compiled(schedule=schedule, time_zone="Europe/Istanbul").cohort.schedule
    assert isinstance(spec, CronSpec)
    assert (spec.zone, spec.gap, spec.overlap) == ("Europe/Istanbul", gap, overlap)


def test_a_named_policy_is_kept() -> None:
    spec = compiled(schedule="0 2 * * *", dst_gap="SHIFT", dst_overlap="last").cohort.schedule
    assert isinstance(spec, CronSpec)
    assert (spec.gap, spec.overlap) == (DstGap.SHIFT, DstOverlap.LAST)


def test_hashed_fields_differ_by_job_and_stay() -> None:
    cohorts = {compiled(f"job-{n}", schedule="H H * * *").cohort for n in range(20)}
    assert len(cohorts) > 10
    assert compiled("a", schedule="H * * * *").cohort == compiled("a", schedule="H * * * *").cohort


def test_spellings_of_one_expression_share_a_cohort() -> None:
    one = compiled("a", schedule="0 2 * * MON").cohort
    other = compiled("b", schedule=" 0  2 * * 1 ").cohort
    assert one.digest == other.digest


def test_an_interval_has_a_stable_whole_second_phase() -> None:
    spec = compiled("report", every="PT1H").cohort.schedule
    assert spec == EverySpec(3_600_000, stable("report") % 3_600 * 1_000, anchored=False)


def test_an_interval_begins_at_start_at() -> None:
    job = compiled(every="P1D", startAt="2030-01-01T03:00:00.250+03:00")
    start_ms = parse_instant("2030-01-01T00:00:00.250Z")
    assert job.cohort.schedule == EverySpec(86_400_000, start_ms, anchored=True)
    assert (job.start_ms, job.end_ms) == (start_ms, None)


def test_one_shots_share_a_cohort() -> None:
    first = compiled("a", run_at="2030-01-01T00:00:00Z")
    second = compiled("b", runAt="2031-01-01T00:00:00Z")
    assert first.cohort is second.cohort
    assert first.cohort.schedule == OnceSpec()
    assert first.run_at_ms == parse_instant("2030-01-01T00:00:00Z")
    assert second.run_at_ms == parse_instant("2031-01-01T00:00:00Z")


def test_jitter_is_stable_and_bounded() -> None:
    for job_id in ("a", "b", "c"):
        cohort = compiled(job_id, schedule="0 2 * * *", jitter_seconds=300).cohort
        assert cohort.jitter_ms == stable(job_id) % 301 * 1_000


def test_policies_in_seconds_become_milliseconds() -> None:
    cohort = compiled(
        every="PT1S",
        misfirePolicy="RUN_ALL",
        misfireGraceSeconds=5,
        misfireWindowSeconds=7,
        queue="bulk",
    ).cohort
    assert cohort.misfire is MisfirePolicy.RUN_ALL
    assert (cohort.grace_ms, cohort.window_ms, cohort.queue) == (5_000, 7_000, "bulk")


def test_paused_is_kept() -> None:
    assert compiled(every="PT1S", paused=True).paused
    assert not compiled(every="PT1S").paused


def test_the_body_becomes_a_run_command() -> None:
    payload = {"é": ["\u2028", 12345678901234567890123, 0.1, None, True], "": "x\u0000"}
    target = {"kind": "KAFKA", "topic": "orders", "key": "98213", "headers": {"h": "v"}}
    job = compiled(
        'a"\\b', every="PT5S", payload=payload, target=target, owner="shop", type="T",
        maxAttempts=3, timeoutSeconds=9, retryBaseSeconds=1, retryCapSeconds=2, maxOpenRuns=4,
        expectSuccessWithinSeconds=60,
    )  # fmt: skip
    run = command(job)
    assert run.payload == payload
    assert run.target.model_dump() == target | {"kind": "kafka"}
    assert run.run_id == run_id_of('a"\\b', 1_000)
    assert (run.job_id, run.definition_offset, run.owner, run.type) == ('a"\\b', 7, "shop", "T")
    assert (run.scheduled_at, run.run_at, run.settled_below) == (1_000, 3_000, 500)
    assert (run.max_attempts, run.timeout_seconds, run.max_open_runs) == (3, 9, 4)
    assert (run.retry_base_seconds, run.retry_cap_seconds) == (1, 2)
    assert (run.expect_success_within_seconds, run.concurrency) == (60, "allow")


def test_defaults() -> None:
    run = command(compiled(every="PT5S"))
    assert (run.max_attempts, run.timeout_seconds, run.max_open_runs) == (5, 60, 100)
    assert (run.owner, run.queue, run.type, run.payload) == ("default", "default", None, None)
    assert run.target.kind == "none"


def test_true_is_not_one_even_when_one_was_seen_before() -> None:
    compiled(every="PT5S", max_attempts=1)
    with pytest.raises(DefinitionError, match="valid integer"):
        compiled(every="PT5S", max_attempts=True)


def test_a_large_definition_compiles_as_a_small_one_does() -> None:
    job = compiled(every="PT5S", labels={"a": "b"}, payload="x" * 200_000)
    assert command(job).payload == "x" * 200_000
