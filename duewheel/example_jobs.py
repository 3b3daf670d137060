"""The example jobs that ``duewheel up`` applies, from the folder ``examples``."""

import dataclasses
import json
from pathlib import Path

from scheduler.cli.apply import valid_definitions
from scheduler.cli.documents import Definition
from scheduler.contract.compile import compile_job
from scheduler.core.instant import format_instant

TOPIC = "example-messages"
"""Where the examples with a Kafka target write to."""

_HERE = Path(__file__)
_INSTALLED = _HERE.with_name("examples")
_CHECKOUT = _HERE.parents[1] / "examples"

_ONE_SHOT_DELAY_MS = 5_000


def folder() -> Path:
    """Where the example files are: in the installed package, else in the checkout."""
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def example_jobs(now_ms: int) -> list[Definition]:
    """The examples, one-shots moved to a few seconds after ``now_ms`` so that they are seen."""
    return [soon(definition, now_ms) for definition in valid_definitions([folder()])]


def soon(definition: Definition, now_ms: int) -> Definition:
    """A one-shot made due in five seconds; any other definition as it is."""
    if definition.job.run_at_ms is None:
        return definition
    content = json.loads(definition.value)
    content["run_at"] = format_instant(now_ms + _ONE_SHOT_DELAY_MS)
    value = json.dumps(content, ensure_ascii=False).encode()
    job = compile_job(definition.job_id, value, 0)
    return dataclasses.replace(definition, value=value, job=job)
