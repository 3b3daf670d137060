"""What only the store on disk has: crashes, locks, rot, full disks."""

import hashlib
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler.errors import ConfigError, StoreLostError
from scheduler.store.rocks import RocksStore, StoreConfig, open_store
from tests.unit.store.numbered_writer import FLUSH_AT, POSITION, SMALL_BUFFERS, row_key

TOP = b"\xff" * 4
ROWS = [(b"%08d" % n, hashlib.sha512(b"%d" % n).digest() * 4) for n in range(4_000)]
"""About 1 MB that does not compress."""


def filled(path: Path) -> RocksStore:
    """A store whose rows lie in a file."""
    store, _ = open_store(path)
    store.write(ROWS)
    store.flush()
    return store


def rot(path: Path) -> None:
    """Damage a block in the middle of the store's table file."""
    (table,) = path.glob("*.sst")
    content = bytearray(table.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    table.write_bytes(content)


@contextmanager
def files_at_most(size_bytes: int) -> Iterator[None]:
    """Let every write beyond ``size_bytes`` of a file fail, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def numbered_writer(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that writes into the store in ``path``; killed at the end of the block."""
    command = [sys.executable, "-m", "tests.unit.store.numbered_writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: "subprocess.Popen[str]", line: str) -> None:
    """Read the process's output up to ``line``."""
    assert process.stdout is not None
    for printed in process.stdout:
        if printed.strip() == line:
            return
    pytest.fail(f"the writer ended before {line!r}")


def test_a_killed_process_leaves_a_consistent_prefix_with_all_that_was_flushed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with numbered_writer(path) as process:
        read_until(process, f"flushed {FLUSH_AT}")
        read_until(process, f"written {FLUSH_AT + 1_000}")

    store, fresh = open_store(path, SMALL_BUFFERS)
    position = int(store.get(POSITION) or b"0")
    numbers = [key for key, _ in store.scan(b"row", b"rox", 1_000_000)]
    store.close()

    assert not fresh
    assert position >= FLUSH_AT
    assert numbers == [row_key(number) for number in range(1, position + 1)]


def test_nothing_is_written_ahead(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path / "store")
    store.write(ROWS)

    assert sum(log.stat().st_size for log in (tmp_path / "store").glob("*.log")) == 0
    store.close()


def test_a_closed_store_is_found_again_whole(tmp_path: Path) -> None:
    store, fresh = open_store(tmp_path / "store")
    store.write(ROWS)
    store.close()
    again, fresh_again = open_store(tmp_path / "store")

    assert (fresh, fresh_again) == (True, False)
    assert again.scan(b"", TOP, 10_000) == ROWS
    assert again.moved_aside is None
    again.close()


def test_another_thread_may_flush_while_this_one_writes(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path / "store", SMALL_BUFFERS)
    written = threading.Event()
    flushed: list[int] = []

    def flush_until_written() -> None:
        while not written.is_set():
            store.flush()
            flushed.append(1)

    flusher = threading.Thread(target=flush_until_written)
    flusher.start()
    for first in range(0, len(ROWS), 50):
        store.write(ROWS[first : first + 50])
        assert store.get(ROWS[first][0]) == ROWS[first][1]
    written.set()
    flusher.join(30)

    assert flushed
    assert store.scan(b"", TOP, 10_000) == ROWS
    store.close()


def test_reopening_applies_the_new_settings(tmp_path: Path) -> None:
    path = tmp_path / "store"
    open_store(path, StoreConfig(write_buffer_bytes=1 << 20))[0].close()
    store, _ = open_store(path, StoreConfig(write_buffer_bytes=2 << 20))
    newest = max(path.glob("OPTIONS-*"))

    assert f"write_buffer_size={2 << 20}" in newest.read_text()
    store.close()


def test_a_folder_in_use_by_another_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with numbered_writer(path) as process:
        read_until(process, "written 1")
        with pytest.raises(ConfigError, match=r"in use by another process.*DUEWHEEL_STATE_DIR"):
            open_store(path)


def test_a_rotten_block_ends_a_scan_with_an_error_and_the_next_process_starts_empty(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    filled(path).close()
    rot(path)
    store, _ = open_store(path)
    with pytest.raises(StoreLostError, match="is corrupt") as failure:
        store.scan(b"", TOP, 10_000)
    store.close()
    rebuilt, fresh = open_store(path)

    assert failure.value is not None  # the caught error is still alive and holds no lock
    assert fresh
    assert rebuilt.moved_aside == tmp_path / "store.corrupt-1"
    assert rebuilt.scan(b"", TOP, 1) == []
    rebuilt.close()


def get_one_by_one(store: RocksStore) -> object:
    return [store.get(key) for key, _ in ROWS]


def get_at_once(store: RocksStore) -> object:
    return store.get_many([key for key, _ in ROWS])


@pytest.mark.parametrize("read", [get_one_by_one, get_at_once])
def test_a_rotten_block_is_reported_by_point_reads(
    tmp_path: Path, read: Callable[[RocksStore], object]
) -> None:
    path = tmp_path / "store"
    filled(path).close()
    rot(path)
    store, _ = open_store(path)
    with pytest.raises(StoreLostError, match="is corrupt"):
        read(store)
    store.close()


@pytest.mark.parametrize(
    "damaged", ["CURRENT", "MANIFEST-*", "*.sst"], ids=["current", "manifest", "table"]
)
@pytest.mark.parametrize("how", ["emptied", "gone"])
def test_a_store_that_cannot_be_opened_is_moved_aside(
    tmp_path: Path, damaged: str, how: str
) -> None:
    path = tmp_path / "store"
    filled(path).close()
    (victim,) = path.glob(damaged)
    victim.unlink()
    if how == "emptied":
        victim.touch()
    store, fresh = open_store(path)

    assert fresh
    assert store.moved_aside == tmp_path / "store.corrupt-1"
    store.write([(b"a", b"1")])
    store.close()
    assert open_and_get(path, b"a") == b"1"


def open_and_get(path: Path, key: bytes) -> bytes | None:
    store, _ = open_store(path)
    value = store.get(key)
    store.close()
    return value


def test_a_full_disk_fails_the_flush_and_every_write_after_it(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store, _ = open_store(path)
    store.write([(b"kept", b"1")])
    store.flush()
    store.write(ROWS)
    with files_at_most(300_000):
        with pytest.raises(StoreLostError, match=r"free space.*DUEWHEEL_STATE_DIR"):
            store.flush()
        with pytest.raises(StoreLostError):
            store.write([(b"late", b"1")])
        with pytest.raises(StoreLostError):
            store.drop_range(b"0", b"1")
        with pytest.raises(StoreLostError):
            store.close()
        store.close()
    again, _ = open_store(path)

    assert again.scan(b"", TOP + TOP, 10_000) == [(b"kept", b"1")]
    again.close()
