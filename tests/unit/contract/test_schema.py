"""The committed JSON Schemas are those of the models."""

import json
import re
from pathlib import Path

from scheduler.contract.schema import FOLDER, MESSAGES, stale_files, write_files


def test_committed_files_are_fresh() -> None:
    assert stale_files(FOLDER) == [], "run python -m scheduler.contract.schema"


def test_stale_missing_and_foreign_files_are_found_and_mended(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "run-command.json").write_text("{}")
    (tmp_path / "job-status.json").unlink()
    (tmp_path / "old.json").write_text("{}")
    assert stale_files(tmp_path) == ["job-status.json", "old.json", "run-command.json"]
    write_files(tmp_path)
    assert stale_files(tmp_path) == []


def test_topic_fields_are_snake_case() -> None:
    for name in MESSAGES:
        schema = json.loads((FOLDER / f"{name}.json").read_text())
        assert all(re.fullmatch("[a-z_]*[a-z]", field) for field in schema["properties"]), name


def test_a_target_needs_its_kind() -> None:
    schema = json.loads((FOLDER / "job-definition.json").read_text())
    assert "kind" in schema["$defs"]["KafkaTarget"]["required"]
