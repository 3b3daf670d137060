"""From a definition's bytes to what the wheel works with.

Theory of operation. A rebuild compiles millions of definitions, and most of them share all but
a few fields: id, payload, target, the instant of a one-shot. What they share is a *template*:
validated and compiled once, then found again by the raw fields. What differs is checked on its
own. The fast way only ever accepts; whatever it cannot take goes through the whole model, which
accepts it or names every fault. So the rules are in one place, `JobDefinition`, and the fast
way can be wrong only by accepting what the model would refuse; a property test compares both.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from scheduler.contract.faults import Fault
from scheduler.contract.fields import check_defined_instant, check_job_id
from scheduler.contract.job import (
    LABELS_MAX,
    Concurrency,
    DstGapChoice,
    DstOverlapChoice,
    JobDefinition,
    ResumePolicy,
    refusal,
)
from scheduler.contract.limits import ERROR_BYTES_MAX, LIMITS, Limits
from scheduler.contract.message import read_instant
from scheduler.contract.strict_json import read_object
from scheduler.contract.target import ExternalTarget, Target
from scheduler.core.cron import CronError, CronText, normalise
from scheduler.core.definition import (
    Cohort,
    CompiledJob,
    CronSpec,
    DstGap,
    DstOverlap,
    EverySpec,
    OnceSpec,
    ScheduleSpec,
)
from scheduler.core.spread import jitter_of, phase_of
from scheduler.errors import DefinitionError, RequestError, invariant

_FAST_BYTES_MAX = 16_384
"""Larger definitions are rare and would fill the caches: they take the whole way."""

_ENVELOPE_BYTES = 2_048
"""What a run command or dead letter adds to a body beside attempts: instants, counters, ids."""

_ATTEMPT_BYTES = ERROR_BYTES_MAX + 512
"""One attempt in a dead letter: its error, cut, and its instants."""

_HASH = re.compile(r"(?<![A-Z])H(?![A-Z])", re.IGNORECASE)
"""``H`` in a cron expression stands for a value derived from the job id (not the one in THU)."""

_ABSENT = object()
_ANY_INSTANT = "2000-01-01T00:00:00Z"
"""Stands for the instant of a one-shot in its template."""


@dataclass(frozen=True, eq=False, slots=True)
class _Template:
    """What many definitions share, compiled. Compared by identity, so that it is a cheap key."""

    definition: JobDefinition
    hashed: bool
    """The expression has an ``H``."""
    per_job: bool
    """Jitter, phase or ``H``: the cohort depends on the job id."""
    fixed: bytes
    """Members of the run command between definition_offset and target."""
    settings: bytes
    """Members of the run command after the payload."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A definition taken apart: the template and what is the job's own."""

    template: _Template
    run_at_ms: int | None
    target: bytes
    payload: bytes


def compile_job(job_id: str, value: bytes, offset: int, limits: Limits = LIMITS) -> CompiledJob:
    """Check a definition and compile it.

    Args:
        job_id: the record's key.
        value: the record's value.
        offset: the record's offset; becomes ``definition_offset`` of its runs.
        limits: bounds on its size.

    Raises:
        DefinitionError: it is refused, with the path of the first fault and every reason.
    """
    try:
        check_job_id(job_id)
    except ValueError as error:
        raise DefinitionError("job_id", str(error)) from None
    parts = _fast_parts(job_id, value, limits)
    if parts is None:
        parts = _checked_parts(job_id, value, limits)
    template = parts.template
    cohort, warnings = _timing(template, job_id)
    body = _body(job_id, offset, parts)
    definition = template.definition
    _check_envelope(body, definition, limits)
    return CompiledJob(job_id, cohort, parts.run_at_ms, definition.start_at, definition.end_at,
                       definition.paused, body, warnings)  # fmt: skip


# ---- taking a definition apart -------------------------------------------------------------


def _fast_parts(job_id: str, value: bytes, limits: Limits) -> _Parts | None:
    """The parts by way of the caches; ``None`` where the whole model has to look at it."""
    if len(value) > min(_FAST_BYTES_MAX, limits.definition_bytes_max):
        return None
    try:
        fields = read_object(value, limits)
        _rename(fields, "runAt", "run_at")
        _rename(fields, "jobId", "job_id")
        if fields.pop("job_id", job_id) != job_id or not _plain(fields.pop("labels", _ABSENT)):
            return None
        payload = fields.pop("payload", None)
        target = fields.pop("target", _ABSENT)
        run_at_ms = _own_instant(fields)
        return _Parts(_template(**fields), run_at_ms, _target(target), to_json(payload))
    except (RequestError, ValidationError, TypeError, ValueError):
        return None


def _own_instant(fields: dict[str, Any]) -> int | None:
    """Take a one-shot's instant out of ``fields``. Raises ValueError."""
    run_at = fields.get("run_at")
    if run_at is None:
        return None
    if "start_at" in fields or "end_at" in fields:
        raise ValueError("the model compares these with run_at")
    fields["run_at"] = _ANY_INSTANT
    return check_defined_instant(read_instant(run_at))


def _rename(fields: dict[str, Any], alias: str, name: str) -> None:
    if alias in fields and name not in fields:
        fields[name] = fields.pop(alias)


def _plain(labels: object) -> bool:
    """Whether labels are absent or surely what the model accepts."""
    if labels is _ABSENT:
        return True
    return (
        isinstance(labels, dict)
        and len(labels) <= LABELS_MAX
        and all(isinstance(text, str) for text in labels.values())
    )


def _target(target: object) -> bytes:
    return b'{"kind":"none"}' if target is _ABSENT else _canonical_target(to_json(target))


@lru_cache(maxsize=4_096)
def _canonical_target(target: bytes) -> bytes:
    checked = _TARGET.validate_json(target)
    if unsupported := _unsupported_target(checked):
        raise refusal(unsupported)
    return _TARGET.dump_json(checked)


_TARGET: TypeAdapter[Any] = TypeAdapter(Target)


@lru_cache(maxsize=2_048, typed=True)
def _template(**fields: object) -> _Template:
    # ``typed``: true, 1 and 1.0 are equal keys, and only 1 is a number of seconds.
    definition = JobDefinition.model_validate_json(to_json(fields))
    invariant(definition.model_fields_set.isdisjoint(_OWN), "a template holds a job's own fields")
    if unsupported := _unsupported(definition):
        raise refusal(unsupported)
    return _make_template(definition)


_OWN = frozenset({"job_id", "labels", "payload", "target"})
"""Fields that never become part of a template; ``run_at`` is replaced in it."""


def _checked_parts(job_id: str, value: bytes, limits: Limits) -> _Parts:
    definition = JobDefinition.decode(value, limits)
    if definition.job_id is not None and definition.job_id != job_id:
        raise DefinitionError("job_id", f"is {definition.job_id!r} but the key is {job_id!r}")
    unsupported = [*_unsupported(definition), *_unsupported_target(definition.target)]
    if unsupported:
        raise refusal(unsupported)
    target = _TARGET.dump_json(definition.target)
    payload = to_json(definition.payload)
    return _Parts(_make_template(definition), definition.run_at, target, payload)


def _make_template(definition: JobDefinition) -> _Template:
    slim = definition.model_copy(update={"payload": None})
    unanchored = definition.every is not None and definition.start_at is None
    hashed = definition.schedule is not None and _HASH.search(definition.schedule) is not None
    own = definition.jitter_seconds > 0 or unanchored or hashed
    owner = to_json({"owner": slim.owner, "type": slim.type, "queue": slim.queue})[1:-1]
    settings = to_json({
        "max_attempts": slim.max_attempts,
        "timeout_seconds": slim.timeout_seconds,
        "retry_base_seconds": slim.retry_base_seconds,
        "retry_cap_seconds": slim.retry_cap_seconds,
        "concurrency": slim.concurrency.value,
        "max_open_runs": slim.max_open_runs,
        "expect_success_within_seconds": slim.expect_success_within_seconds,
    })[1:-1]  # fmt: skip
    return _Template(slim, hashed, own,
                     b"," + owner + b',"target":', b"," + settings + b',"run_id":"')  # fmt: skip


# ---- what is refused -----------------------------------------------------------------------


def _unsupported(definition: JobDefinition) -> list[Fault]:
    """What the contract has and this version does not do: promise nothing that is not done."""
    faults: list[Fault] = []
    if definition.exclude:
        faults.append(("exclude", "calendars are not supported yet"))
    if definition.concurrency is not Concurrency.ALLOW:
        policy = definition.concurrency.value
        faults.append(("concurrency", f"{policy} is not supported yet; only allow is"))
    if definition.resume_policy is not ResumePolicy.NONE:
        policy = definition.resume_policy.value
        faults.append(("resume_policy", f"{policy} is not supported yet; only none is"))
    return faults


def _unsupported_target(target: object) -> list[Fault]:
    if isinstance(target, ExternalTarget):
        return [("target.kind", "external is not supported yet")]
    return []


def _check_envelope(body: bytes, definition: JobDefinition, limits: Limits) -> None:
    """The largest later record of this job must fit its topic: a dead letter."""
    # A writer that escapes everything but ASCII makes six bytes of two.
    body_bytes = len(body) if body.isascii() else 3 * len(body)
    largest = body_bytes + _ENVELOPE_BYTES + definition.max_attempts * _ATTEMPT_BYTES
    if largest > limits.record_bytes_max:
        raise DefinitionError(
            "payload",
            f"its dead letter could take {largest} bytes, above the limit of "
            f"{limits.record_bytes_max}; make the payload smaller or max_attempts lower",
        )


# ---- when ----------------------------------------------------------------------------------


def _timing(template: _Template, job_id: str) -> tuple[Cohort, tuple[str, ...]]:
    if not template.per_job:
        return _shared_timing(template, 0, 0, None)
    definition = template.definition
    jitter_ms = jitter_of(job_id, definition.jitter_seconds)
    phase_ms = phase_of(job_id, definition.every) * 1_000 if definition.every else 0
    if template.hashed:
        return _shared_timing.__wrapped__(template, jitter_ms, phase_ms, job_id)
    return _shared_timing(template, jitter_ms, phase_ms, None)


@lru_cache(maxsize=65_536)
def _shared_timing(
    template: _Template, jitter_ms: int, phase_ms: int, job_id: str | None
) -> tuple[Cohort, tuple[str, ...]]:
    definition = template.definition
    schedule, warnings = _schedule(definition, phase_ms, job_id)
    cohort = Cohort(
        schedule=schedule,
        jitter_ms=jitter_ms,
        misfire=definition.misfire_policy,
        grace_ms=definition.misfire_grace_seconds * 1_000,
        window_ms=definition.misfire_window_seconds * 1_000,
        queue=definition.queue,
        exclude=tuple(sorted(set(definition.exclude))),
    )
    return cohort, warnings


def _schedule(
    definition: JobDefinition, phase_ms: int, job_id: str | None
) -> tuple[ScheduleSpec, tuple[str, ...]]:
    if definition.schedule is not None:
        text = _cron(definition.schedule, job_id)
        spec = CronSpec(text.expression, definition.time_zone, *_dst(definition, text))
        return spec, tuple(text.warnings)
    if definition.every is None:
        return OnceSpec(), ()
    anchored = definition.start_at is not None
    anchor_ms = definition.start_at if definition.start_at is not None else phase_ms
    return EverySpec(definition.every * 1_000, anchor_ms, anchored), ()


def _cron(expression: str, job_id: str | None) -> CronText:
    try:
        return normalise(expression, job_id)
    except CronError as error:
        raise DefinitionError("schedule", error.reason) from None


def _dst(definition: JobDefinition, text: CronText) -> tuple[DstGap, DstOverlap]:
    """Resolve ``auto``."""
    gap, overlap = definition.dst_gap, definition.dst_overlap
    auto_gap, auto_overlap = text.auto
    return (
        auto_gap if gap is DstGapChoice.AUTO else DstGap(gap.value),
        auto_overlap if overlap is DstOverlapChoice.AUTO else DstOverlap(overlap.value),
    )


# ---- what ----------------------------------------------------------------------------------


def _body(job_id: str, offset: int, parts: _Parts) -> bytes:
    """The run command's members that do not depend on the instant (see core/command.py)."""
    name = encode_basestring_ascii(job_id).encode()
    template = parts.template
    return b"".join((
        b'"kind":"run","job_id":', name, b',"definition_offset":%d' % offset, template.fixed,
        parts.target, b',"payload":', parts.payload, template.settings, name[1:-1], b"@",
    ))  # fmt: skip
