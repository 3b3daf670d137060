"""Rules of the house that no linter knows."""

import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("duewheel", "scheduler", "executor", "devkafka")
SOURCES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

ASYNCIO_NAMES = frozenset({"create_task", "Task", "TaskGroup", "current_task", "all_tasks"})
"""asyncio's own; the glossary has job, run and attempt instead."""

UNSPEAKING = frozenset({"utils", "util", "helpers", "common", "manager", "misc"})

SOURCE_LINES_MAX = 500
"""A file aims at 50 to 250 lines; past this one it is no longer a matter of taste."""
TEST_LINES_MAX = 600


def names(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield token.string


def forbidden_names(text: str) -> set[str]:
    found = {name for name in names(text) if re.search(r"(?i)task", name)}
    return found - ASYNCIO_NAMES


def test_the_rule_about_names_finds_what_it_forbids() -> None:
    assert forbidden_names("def run_task(TaskId): create_task()") == {"run_task", "TaskId"}


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_is_called_a_task(file: Path) -> None:
    assert forbidden_names(file.read_text(encoding="utf-8")) == set()


def test_every_module_says_in_its_name_what_is_in_it() -> None:
    assert [file for file in SOURCES if file.stem in UNSPEAKING] == []


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    too_long = {
        str(file.relative_to(ROOT)): lines
        for files, lines_max in ((SOURCES, SOURCE_LINES_MAX), (TESTS, TEST_LINES_MAX))
        for file in files
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > lines_max
    }
    assert too_long == {}


def test_only_the_clock_reads_the_clock() -> None:
    excused = [
        str(file.relative_to(ROOT))
        for file in SOURCES
        if re.search(r"noqa:.*(TID251|DTZ)", file.read_text(encoding="utf-8"))
    ]
    assert excused == []
