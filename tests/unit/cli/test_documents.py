"""Reading definitions from files: every form, and every fault at once."""

import json
from pathlib import Path

import pytest

from scheduler.cli.documents import Definition, Fault, load

VALID = "job_id: {id}\nevery: PT5S\n"


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _ids(definitions: list[Definition]) -> list[str]:
    return [definition.job_id for definition in definitions]


def _one_fault(path: Path) -> Fault:
    definitions, faults = load([path])
    assert definitions == []
    assert len(faults) == 1
    return faults[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("documents.yaml", "job_id: a\nevery: PT5S\n---\njob_id: b\nevery: PT6S\n"),
        ("list.yml", "- {job_id: a, every: PT5S}\n- {job_id: b, every: PT6S}\n"),
        ("list.json", '[{"job_id":"a","every":"PT5S"},{"jobId":"b","every":"PT6S"}]'),
        (
            "gaps.yaml",
            "---\njob_id: a\nevery: PT5S\n---\n---\n# none\n---\njob_id: b\nevery: PT6S\n",
        ),
    ],
)
def test_one_file_holds_several_definitions(tmp_path: Path, name: str, text: str) -> None:
    definitions, faults = load([_file(tmp_path, name, text)])
    assert faults == []
    assert _ids(definitions) == ["a", "b"]


def test_a_folder_is_searched_to_its_depth_in_order_of_name(tmp_path: Path) -> None:
    _file(tmp_path, "b.yaml", VALID.format(id="second"))
    _file(tmp_path, "a/deep.json", '{"job_id":"first","every":"PT5S"}')
    _file(tmp_path, "notes.txt", "not a definition")
    definitions, faults = load([tmp_path])
    assert faults == []
    assert _ids(definitions) == ["first", "second"]


def test_the_value_is_the_definition_as_json(tmp_path: Path) -> None:
    text = "job_id: a\nrun_at: 2026-11-30T09:00:00Z\npayload: {on: no, count: 010, ratio: 1.5}\n"
    definitions, faults = load([_file(tmp_path, "a.yaml", text)])
    assert faults == []
    assert json.loads(definitions[0].value) == {
        "job_id": "a",
        "run_at": "2026-11-30T09:00:00Z",
        "payload": {"on": "no", "count": 10, "ratio": 1.5},
    }
    assert definitions[0].job.run_at_ms == 1_796_029_200_000


def test_every_fault_of_every_file_is_told(tmp_path: Path) -> None:
    _file(tmp_path, "1.yaml", "job_id: a\nschedule: 99 * * * *\n")
    _file(tmp_path, "2.yaml", "every: PT5S\n---\njob_id: b\nevery: PT5S\ntimezone: UTC\n")
    _file(tmp_path, "3.json", "{")
    _file(tmp_path, "4.yaml", VALID.format(id="good"))
    definitions, faults = load([tmp_path])
    assert _ids(definitions) == ["good"]
    told = [str(fault).removeprefix(f"{tmp_path}/") for fault in faults]
    assert [line.split(": ")[0] for line in told] == ["1.yaml:1", "2.yaml:1", "2.yaml:3", "3.json"]
    assert "job_id" in told[1]
    assert "time_zone" in told[2], "the nearest known field is named"
    assert "not JSON" in told[3]


def test_an_id_may_be_defined_once_only(tmp_path: Path) -> None:
    first = _file(tmp_path, "1.yaml", VALID.format(id="a"))
    _file(tmp_path, "2.yaml", VALID.format(id="a"))
    _, faults = load([tmp_path])
    assert [fault.reason for fault in faults] == [f"job_id a is already defined at {first}:1"]


def test_a_key_may_stand_once_only(tmp_path: Path) -> None:
    fault = _one_fault(_file(tmp_path, "a.yaml", "job_id: a\nevery: PT5S\nevery: PT6S\n"))
    assert fault.source.endswith("a.yaml:3")
    assert "'every' appears twice" in fault.reason


def test_a_bare_asterisk_gets_advice(tmp_path: Path) -> None:
    fault = _one_fault(_file(tmp_path, "a.yaml", "job_id: a\nschedule: */5 * * * *\n"))
    assert fault.source.endswith("a.yaml:2")
    assert "put quotes around" in fault.reason


@pytest.mark.parametrize("text", ["just text", "- 1\n", "[[]]"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    assert "mapping" in _one_fault(_file(tmp_path, "a.yaml", text)).reason


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    fault = _one_fault(tmp_path / "absent.yaml")
    assert fault.source.endswith("absent.yaml")
    assert "No such file" in fault.reason


def test_an_infinite_number_is_refused(tmp_path: Path) -> None:
    fault = _one_fault(_file(tmp_path, "a.json", '{"job_id":"a","every":"PT5S","payload":1e999}'))
    assert "JSON" in fault.reason
