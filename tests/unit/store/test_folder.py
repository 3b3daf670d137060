"""Whose folder is it, and can it be trusted."""

from pathlib import Path

import pytest

from scheduler.errors import ConfigError
from scheduler.store import folder


def test_a_new_folder_is_made_and_empty(tmp_path: Path) -> None:
    path = tmp_path / "state" / "store"

    assert folder.prepare(path)
    assert folder.prepare(path)
    assert folder.is_trusted(path)


def test_a_folder_with_anything_else_beside_the_seal_is_not_empty(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    (tmp_path / "CURRENT").touch()

    assert not folder.prepare(tmp_path)


def test_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ConfigError, match=r"not a Duewheel store \(e.g. letters.txt\)"):
        folder.prepare(tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == ["letters.txt"]


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")

    with pytest.raises(ConfigError, match=r"cannot be used.*DUEWHEEL_STATE_DIR"):
        folder.prepare(tmp_path / "store")


def test_a_condemned_folder_is_not_trusted_and_says_why(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    folder.condemn(tmp_path, "block checksum mismatch")

    assert not folder.is_trusted(tmp_path)
    assert "block checksum mismatch" in (tmp_path / folder.SEAL_NAME).read_text()


def test_each_corrupt_folder_keeps_a_name_of_its_own(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        folder.prepare(tmp_path / "store")
        names.append(folder.move_aside(tmp_path / "store").name)

    assert names == ["store.corrupt-1", "store.corrupt-2"]
