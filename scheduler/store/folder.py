"""The folder of a store: whose it is, whether it can be trusted, and moving a bad one aside.

A *seal* file tells our store from somebody else's files, so that nothing foreign is ever
moved or written into. The seal is also where a running process leaves word that the store is
corrupt: RocksDB opens a database with a rotten block without complaint and fails only when
that block is read, so without a word left behind each restart would meet it again.
"""

from pathlib import Path

from scheduler.errors import ConfigError

SEAL_NAME = "duewheel-store"
_SEAL = "duewheel store 1\n"
"""The number is that of the store's format; any other content means: do not trust it."""


def prepare(path: Path) -> bool:
    """Make the folder or take over our own; returns whether there is no database in it yet.

    Raises:
        ConfigError: not a folder, not writable, or it holds files that are not a store's.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in path.iterdir()}
        if names and SEAL_NAME not in names:
            raise ConfigError(
                f"{path} holds files that are not a Duewheel store (e.g. {min(names)}); "
                "set DUEWHEEL_STATE_DIR to an empty or a new folder"
            )
        if not names:
            _write_seal(path, _SEAL)
    except OSError as error:
        raise ConfigError(
            f"the store's folder {path} cannot be used ({error.strerror or error}); "
            "make it a writable folder or change DUEWHEEL_STATE_DIR"
        ) from error
    return names <= {SEAL_NAME}


def is_trusted(path: Path) -> bool:
    """Whether the seal is whole: of this format, and nobody condemned the store."""
    return (path / SEAL_NAME).read_bytes() == _SEAL.encode()


def condemn(path: Path, reason: str) -> None:
    """Leave word that the store is corrupt; whoever opens it next moves it aside."""
    _write_seal(path, f"corrupt: {reason}\n")


def move_aside(path: Path) -> Path:
    """Rename the folder to ``<name>.corrupt-<n>``, n the first free number from 1."""
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside


def _write_seal(path: Path, content: str) -> None:
    """Replace the seal in one step: a crash leaves the old one or the new one."""
    draft = path / f"{SEAL_NAME}.tmp"
    draft.write_text(content, encoding="utf-8")
    draft.replace(path / SEAL_NAME)
