"""docs/operations.md names every exit code and every log event, and no other."""

import re

import pytest

import executor.events
import scheduler.runtime.events
from scheduler.errors import ExitCode
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")


def _section(begin: str, end: str) -> str:
    return PAGE.partition(begin)[2].partition(end)[0]


def _events(module: object) -> set[str]:
    return {value for name, value in vars(module).items() if name.isupper()}


def test_every_exit_code_is_documented() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", _section("## Exit codes", "## "), re.MULTILINE)
    assert rows == [(str(int(code)), code.name) for code in ExitCode]


@pytest.mark.parametrize(
    ("section", "module"),
    [
        (_section("\nScheduler:\n", "\nExecutor:\n"), scheduler.runtime.events),
        (_section("\nExecutor:\n", "\n## "), executor.events),
    ],
    ids=["scheduler", "executor"],
)
def test_every_log_event_is_documented(section: str, module: object) -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == _events(module)
