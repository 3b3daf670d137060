"""Whatever the model accepts compiles, and its command decodes; caches change nothing."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler.contract.compile import compile_job
from scheduler.contract.job import JobDefinition
from scheduler.contract.run import RunCommand
from scheduler.core.command import run_command
from scheduler.core.definition import Cohort
from scheduler.core.instant import MAX_MS, format_instant
from scheduler.errors import DefinitionError

INSTANTS = st.integers(0, MAX_MS - 3 * 86_400_000).map(format_instant)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
SCHEDULES = st.one_of(
    st.fixed_dictionaries({"schedule": st.sampled_from([
        "*/5 * * * *", "0 2 * * MON-FRI", "H H * * *", "@hourly", "30 0 12 L * *", "0 0 29 2 *",
    ])}),
    st.fixed_dictionaries({"every": st.sampled_from(["PT1S", "PT90M", "P1D", "P2W"])}),
    st.fixed_dictionaries({"run_at": INSTANTS}),
    st.fixed_dictionaries({"runAt": INSTANTS}),
)  # fmt: skip
TARGETS = st.one_of(
    st.just({"kind": "NONE"}),
    st.fixed_dictionaries({"kind": st.just("kafka"), "topic": st.just("orders"), "key": NAMES}),
    st.just({"kind": "http", "url": "https://reports.internal/run", "success": [200, 409]}),
    st.just({"kind": "python", "handler": "shop.reports:nightly"}),
)
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "time_zone": st.sampled_from(["UTC", "Europe/Istanbul", "America/New_York"]),
    "dst_gap": st.sampled_from(["auto", "SKIP", "run_after", "shift"]),
    "dst_overlap": st.sampled_from(["auto", "first", "LAST", "both"]),
    "start_at": INSTANTS,
    "endAt": INSTANTS,
    "jitter_seconds": st.integers(0, 86_400),
    "misfirePolicy": st.sampled_from(["RUN_ONCE", "skip", "run_all"]),
    "misfire_grace_seconds": st.integers(0, 1_000),
    "target": TARGETS,
    "payload": JSON,
    "queue": st.sampled_from(["default", "bulk"]),
    "owner": NAMES,
    "type": NAMES,
    "labels": st.dictionaries(NAMES, NAMES, max_size=3),
    "max_attempts": st.integers(1, 100),
    "retryBaseSeconds": st.integers(0, 604_800),
    "expect_success_within_seconds": st.integers(1, 1_000) | st.none(),
    "paused": st.booleans(),
}
VALID_FIELDS = st.builds(
    lambda schedule, rest: schedule | rest,
    SCHEDULES,
    st.fixed_dictionaries({}, optional=OPTIONAL),
)
WRONG_FIELDS = st.dictionaries(
    st.sampled_from([*OPTIONAL, "job_id", "jobId", "run_at", "runAt", "every", "schedule", "x"]),
    JSON,
    max_size=2,
)
JOB_IDS = st.text(
    [chr(code) for code in range(0x21, 0x7F) if chr(code) not in "@#"], min_size=1, max_size=200
)


def accepts(value: bytes) -> bool:
    try:
        JobDefinition.decode(value)
    except DefinitionError:
        return False
    return True


@given(JOB_IDS, VALID_FIELDS, st.integers(0, 2**40))
def test_what_validates_compiles_and_decodes(
    job_id: str, fields: dict[str, Any], offset: int
) -> None:
    value = json.dumps(fields).encode()
    if not accepts(value):
        assert {"start_at", "endAt"} & fields.keys(), "only bounds may exclude each other"
        return
    definition = JobDefinition.decode(value)
    job = compile_job(job_id, value, offset)
    run = RunCommand.decode(run_command(job.body, 1_000, 2_000, "schedule", None))
    assert run.payload == definition.payload
    assert run.target == definition.target
    assert (run.job_id, run.definition_offset) == (job_id, offset)
    assert run.run_id == f"{job_id}@1970-01-01T00:00:01.000Z"
    for name in ("owner", "type", "queue", "max_attempts", "retry_base_seconds"):
        assert getattr(run, name) == getattr(definition, name)
    assert job.run_at_ms == definition.run_at
    assert (job.start_ms, job.end_ms) == (definition.start_at, definition.end_at)
    assert Cohort.decode(job.cohort.encoded) == job.cohort


@given(VALID_FIELDS, WRONG_FIELDS)
def test_the_caches_accept_nothing_that_the_model_refuses(
    fields: dict[str, Any], wrong: dict[str, Any]
) -> None:
    fields.pop("start_at", None)
    value = json.dumps(fields | wrong).encode()
    try:
        compile_job("job", value, 0)
    except DefinitionError:
        return
    assert accepts(value)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_raise_anything_but_a_refusal(value: bytes) -> None:
    with suppress(DefinitionError):
        compile_job("job", value, 0)


@given(VALID_FIELDS)
def test_a_definition_is_read_back_as_it_was_written(fields: dict[str, Any]) -> None:
    value = json.dumps(fields).encode()
    if accepts(value):
        definition = JobDefinition.decode(value)
        assert JobDefinition.decode(definition.encode()) == definition
