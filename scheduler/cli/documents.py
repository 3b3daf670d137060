"""Job definitions from YAML and JSON files: found, parsed, checked, with every fault at once.

YAML is read by the rules of its version 1.2: a bare ``2026-11-30T09:00:00Z`` stays the text that
a definition wants, and ``on`` or ``no`` are no booleans.
"""

import json
import re
import sys
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scheduler.contract.compile import compile_job
from scheduler.core.definition import CompiledJob
from scheduler.errors import DefinitionError

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = Path("-")


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition as it will be produced.

    Attributes:
        source: file and place, for messages: ``jobs.yaml:12``, ``jobs.json[2]``.
        value: the record's value: JSON.
        job: the same, compiled; its offset is not known yet.
    """

    source: str
    job_id: str
    value: bytes
    job: CompiledJob


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that keeps a file from being applied."""

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _Document:
    source: str
    content: object


def load(paths: Iterable[Path]) -> tuple[list[Definition], list[Fault]]:
    """Read every definition in files and folders (searched to their depth, in order of name).

    ``-`` stands for standard input.
    """
    found = [entry for path in paths for file in _files(path) for entry in _read(file)]
    checked = [_check(entry) if isinstance(entry, _Document) else entry for entry in found]
    definitions = [entry for entry in checked if isinstance(entry, Definition)]
    faults = [entry for entry in checked if isinstance(entry, Fault)]
    return definitions, faults + _repeated(definitions)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(f for f in path.rglob("*") if f.suffix in SUFFIXES and f.is_file())


def _read(file: Path) -> Iterator[_Document | Fault]:
    try:
        text = sys.stdin.read() if file == STDIN else file.read_text(encoding="utf-8")
    except OSError as error:
        yield Fault(str(file), f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        yield Fault(str(file), f"not UTF-8: {error}")
    else:
        documents = _json_documents if file.suffix == ".json" else _yaml_documents
        yield from documents(text, str(file))


def _check(document: _Document) -> Definition | Fault:
    content = document.content
    if not isinstance(content, dict):
        return Fault(document.source, "a definition is a mapping of fields")
    job_id = content.get("job_id", content.get("jobId"))
    if not isinstance(job_id, str):
        return Fault(document.source, "job_id: a definition in a file needs one, as text")
    try:
        value = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        return Definition(document.source, job_id, value, compile_job(job_id, value, 0))
    except DefinitionError as error:
        return Fault(f"{document.source}: job {job_id}", str(error))
    except (TypeError, ValueError) as error:
        return Fault(f"{document.source}: job {job_id}", f"cannot be written as JSON: {error}")


def _repeated(definitions: list[Definition]) -> list[Fault]:
    first: dict[str, str] = {}
    faults = []
    for definition in definitions:
        earlier = first.setdefault(definition.job_id, definition.source)
        if earlier is not definition.source:
            reason = f"job_id {definition.job_id} is already defined at {earlier}"
            faults.append(Fault(definition.source, reason))
    return faults


def _json_documents(text: str, source: str) -> Iterator[_Document | Fault]:
    try:
        content = json.loads(text)
    except ValueError as error:
        yield Fault(source, f"not JSON: {error}")
        return
    if isinstance(content, list):
        yield from (_Document(f"{source}[{n}]", item) for n, item in enumerate(content))
    else:
        yield _Document(source, content)


def _yaml_documents(text: str, source: str) -> Iterator[_Document | Fault]:
    loader = _Yaml12Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None or node.tag.endswith(":null"):
                continue  # nothing between two separators
            for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
                line = item.start_mark.line + 1
                yield _Document(f"{source}:{line}", loader.construct_document(item))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}:{mark.line + 1}" if mark else source
        yield Fault(place, f"not YAML: {error.problem}{_advice(text, mark)}")
    except yaml.YAMLError as error:
        yield Fault(source, f"not YAML: {error}")
    finally:
        loader.dispose()


def _advice(text: str, mark: yaml.Mark | None) -> str:
    line = text.splitlines()[mark.line] if mark and mark.line < text.count("\n") + 1 else ""
    if re.search(r":\s*[*@]", line):
        return "; put quotes around an expression that begins with * or @"
    return ""


class _Yaml12Loader(yaml.SafeLoader):
    """Core schema of YAML 1.2, and no key twice in one mapping."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"key {key.value!r} appears twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _decimal(_: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(node.value)  # 010 is ten since YAML 1.2, no longer eight


def _resolve(tag: str, pattern: str, first_characters: list[str]) -> None:
    _Yaml12Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first_characters
    )


_resolve("null", r"~|null|Null|NULL|", ["~", "n", "N", ""])
_resolve("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF"))
_resolve("int", r"[-+]?[0-9]+", list("-+0123456789"))
_resolve(
    "float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")
)
_resolve("merge", "<<", ["<"])
_Yaml12Loader.add_constructor("tag:yaml.org,2002:int", _decimal)
