"""The page of settings is made from the settings, and says something of each."""

from pathlib import Path

import pytest

from duewheel import settings_doc
from duewheel.settings_doc import descriptions, main, page
from executor.settings import ExecutorSettings
from scheduler.settings import KafkaSettings, SchedulerSettings


def test_every_setting_has_its_line_and_its_meaning() -> None:
    lines = [line for line in page().splitlines() if line.startswith("| `")]
    names = [line.split("`")[1] for line in lines]
    fields = (SchedulerSettings.model_fields.keys() | ExecutorSettings.model_fields.keys()) - {
        "bootstrap_servers"
    }
    assert set(names) == {f"DUEWHEEL_{name.upper()}" for name in fields} | {
        "KAFKA_BOOTSTRAP_SERVERS"
    }
    assert [line for line in lines if line.endswith("|  |")] == []


def test_a_meaning_of_several_lines_is_whole() -> None:
    found = descriptions(KafkaSettings)
    assert found["bootstrap_servers"] == "`host:port` pairs, separated by commas."
    assert all(meaning.endswith(".") for meaning in found.values())


def test_a_page_that_is_not_current_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings_doc, "PAGE", tmp_path / "configuration.md")
    assert main(["--check"]) == 1
    assert "run python -m duewheel.settings_doc" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0
