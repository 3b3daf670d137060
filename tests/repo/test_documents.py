"""What the documents say exists: commands, targets, paths, links, pinned versions."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from duewheel.cli import app
from tests.conftest import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
_MAKE = re.compile(r"\bmake ([a-z][a-z-]+)")
_COMMAND = re.compile(
    r"(?:\.venv/bin/|`|^\s*(?:\$ )?)duewheel ([a-z]+)(?: ([a-z]+))?", re.MULTILINE
)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def commands() -> dict[str, set[str]]:
    """Every command with its subcommands."""
    root = typer.main.get_command(app)
    listed = getattr(root, "commands", {})
    return {name: set(getattr(each, "commands", {})) for name, each in listed.items()}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = [link for link in _LINK.findall(page.read_text("utf-8")) if "://" not in link]
    broken = [link for link in targets if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    code = re.findall(r"`([^`\n]+)`|^    (.+)$|^(make .+)$", page.read_text("utf-8"), re.MULTILINE)
    named = {target for spans in code for span in spans for target in _MAKE.findall(span)}
    assert named - make_targets() == set()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_that_is_named_exists(page: Path) -> None:
    known = commands()
    unknown = [
        f"{verb} {noun}".strip()
        for verb, noun in _COMMAND.findall(page.read_text("utf-8"))
        if verb not in known or (known[verb] and noun and noun not in known[verb])
    ]
    assert unknown == []


def test_the_readme_shows_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make run" in readme
    assert "make test" in readme


def test_ci_runs_exactly_the_gate() -> None:
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("make")] == ["make check test"]


def test_every_dependency_is_pinned_and_named_without_an_address() -> None:
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in pinned if not re.fullmatch(r"[A-Za-z0-9._-]+==[\w.!+-]+", line)] == []
    names = {canonical(line.split("==")[0]) for line in pinned}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    assert {canonical(re.split(r"[^\w.-]", each)[0]) for each in wanted} - names == set()


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_decision_says_what_was_rejected() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert records != []
    assert [each.name for each in records if "reject" not in each.read_text("utf-8").lower()] == []
