"""A setting nobody reads promises what nothing does."""

import re

import pytest

from executor.settings import ExecutorSettings
from scheduler.settings import SchedulerSettings
from tests.conftest import ROOT

NAMES = sorted({*SchedulerSettings.model_fields, *ExecutorSettings.model_fields})
CODE = "\n".join(
    file.read_text(encoding="utf-8")
    for package in ("duewheel", "scheduler", "executor")
    for file in sorted((ROOT / package).rglob("*.py"))
)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_read_somewhere(name: str) -> None:
    assert re.search(rf"\b(settings|self)\.{name}\b", CODE)
