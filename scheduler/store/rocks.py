"""`OrderedStore` in RocksDB: one database, one column family, no write-ahead log.

Theory of operation. The log in Kafka is the truth, the store a copy that says in itself how far
it got: positions lie in the same batch as what they cover. So a crash may cost the newest
writes, never the agreement between them, as long as two things hold: one column family (two
are flushed one by one, and a crash then keeps positions without their data or the reverse), and
every batch atomic. Without a write-ahead log a batch takes 5 ms instead of 8, and what a crash
loses is read again from Kafka. `RocksStore.flush` bounds how much that is.

Threads: one thread reads and writes; ``flush`` may be called from another, and that is all.
``write`` and ``scan`` hold the interpreter lock: 5,000 writes for 4 ms, 50,000 for 45 to 70 ms,
in which no other thread runs (heartbeats included). A batch must stay atomic, so it is the
caller who keeps it to about 5,000. ``get_many``, ``flush`` and ``close`` release the lock.

Errors: rocksdict raises bare ``Exception`` with RocksDB's text, so texts are all there is to
sort them by. RocksDB stays in its error state after a failed background write, disk full
included, even when space comes back: the process ends, the next one starts from the last flush.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from scheduler.core.ports import Write
from scheduler.errors import (
    ConfigError,
    DuewheelError,
    InvariantViolation,
    StoreLostError,
    invariant,
)
from scheduler.store import folder


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Memory of a store: about ``block_cache_bytes + write_buffers_max * write_buffer_bytes``.

    Attributes:
        block_cache_bytes: data, index and filter blocks of the files, all of them.
        write_buffer_bytes: what is gathered in memory before it becomes a file.
        write_buffers_max: at most so many, those being written out included.
        open_files_max: file handles.
        background_jobs_max: threads that write files and merge them.
    """

    block_cache_bytes: int = 64 << 20
    write_buffer_bytes: int = 32 << 20
    write_buffers_max: int = 3
    open_files_max: int = 512
    background_jobs_max: int = 2


def open_store(path: Path, config: StoreConfig | None = None) -> tuple["RocksStore", bool]:
    """Open the store in ``path``, or start an empty one.

    A corrupt store is moved aside (`RocksStore.moved_aside` says where to) and an empty one
    takes its place: the log rebuilds it. What was moved is for a post-mortem; delete it at will.

    Returns:
        The store, and whether it is fresh (starts empty).

    Raises:
        ConfigError: the folder is locked by another process, holds foreign files, or cannot
            be used (rights, no space).
    """
    config = config or StoreConfig()
    fresh = folder.prepare(path)
    try:
        database = _open_database(path, config)
    except _CorruptError:
        database = None
    if database is not None and folder.is_trusted(path):
        return RocksStore(path, database), fresh
    if database is not None:
        database.close()
    aside = folder.move_aside(path)
    folder.prepare(path)
    return RocksStore(path, _open_database(path, config), moved_aside=aside), True


class RocksStore:
    """An `OrderedStore` on disk; made by `open_store`.

    Every method raises `InvariantViolation` after `close`, and `StoreLostError` when the disk
    fails, is full, or gives back rotten data: end the process, the next one recovers.

    Attributes:
        moved_aside: where the corrupt predecessor found at the opening lies now, or ``None``.
    """

    def __init__(self, path: Path, database: Rdict, moved_aside: Path | None = None) -> None:
        self.moved_aside = moved_aside
        self._path = path
        self._database = database
        self._closed = False
        self._no_wal = WriteOptions()
        # The stub declares a method; at run time it is an attribute, and calling it fails.
        self._no_wal.disable_wal = True  # type: ignore[method-assign, assignment]

    def get(self, key: bytes) -> bytes | None:
        """Value of ``key``, or ``None``."""
        try:
            value: bytes | None = self._database.get(key)
        except Exception as error:  # rocksdict has no narrower class
            raise self._failure(str(error), error) from error
        return value

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Values of ``keys`` in their order; ``None`` where a key is absent."""
        try:
            values: list[bytes | None] = self._database.get(keys)  # type: ignore[arg-type, assignment]
        except Exception as error:  # rocksdict has no narrower class
            raise self._failure(str(error), error) from error
        return values

    def scan(self, lower: bytes, upper: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first ``limit`` pairs with ``lower <= key < upper``, ascending.

        Cost: one seek (5 microseconds) plus about 0.35 microseconds a pair of 500 bytes, twice
        that where blocks come from the disk. Holds the interpreter lock.
        """
        self._check_open()
        if limit <= 0 or lower >= upper:
            return []
        options = ReadOptions()
        options.set_iterate_upper_bound(upper)
        rows = self._database.iter(options)
        try:
            return _take(rows, lower, limit)
        except Exception as error:  # noqa: BLE001  rocksdict has no narrower class
            problem = str(error)
        # Past the handler, so that no traceback keeps the iterator, and with it the LOCK, alive.
        del rows
        raise self._failure(problem)

    def write(self, writes: Iterable[Write]) -> None:
        """Apply all writes atomically, in order (a later write of a key wins).

        Holds the interpreter lock for about 0.8 ms a thousand entries of 500 bytes.
        """
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key, value in writes:
            if value is None:
                delete(key)
            else:
                put(key, value)
        self._check_open()
        try:
            self._database.write(batch, self._no_wal)
        except Exception as error:  # rocksdict has no narrower class
            raise self._failure(str(error), error) from error

    def drop_range(self, lower: bytes, upper: bytes) -> None:
        """Delete every key with ``lower <= key < upper`` (cheap, lazily reclaimed)."""
        self._check_open()
        if lower >= upper:
            return
        try:
            self._database.delete_range(lower, upper, self._no_wal)
        except Exception as error:  # rocksdict has no narrower class
            raise self._failure(str(error), error) from error

    def flush(self) -> None:
        """Make everything written so far survive a crash of the process."""
        try:
            self._database.flush()
        except Exception as error:  # rocksdict has no narrower class
            raise self._failure(str(error), error) from error

    def close(self) -> None:
        """Flush and release the files and the LOCK; idempotent.

        Raises:
            StoreLostError: the last writes could not be flushed. The files are released all
                the same, and the next process reads those writes from the log again.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._database.close()  # flushes, then releases even where the flush failed
        except Exception as error:  # rocksdict has no narrower class
            raise self._failure(str(error), error) from error

    def _check_open(self) -> None:
        invariant(not self._closed, _CLOSED)

    def _failure(self, text: str, error: Exception | None = None) -> DuewheelError:
        """The error that tells the caller what to do about RocksDB's ``text``."""
        if isinstance(error, DbClosedError):
            return InvariantViolation(_CLOSED)
        if _is_corruption(text):
            folder.condemn(self._path, text)
            return StoreLostError(
                f"the store in {self._path} is corrupt ({text}); start the process again: it "
                "moves the folder aside and rebuilds it from the log"
            )
        return StoreLostError(
            f"the store in {self._path} failed ({text}); see to free space and the health of "
            "the disk (DUEWHEEL_STATE_DIR), then start the process again"
        )


_CLOSED = "the store is closed; open it again before use"


class _CorruptError(Exception):
    """The database on disk cannot be opened because of what it contains."""


def _take(rows: RdictIter, lower: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    """Read on from ``lower``. `Rdict.items` is a third faster and must not be used: at a rotten
    block it ends as if there were no more, and jobs would be forgotten in silence.
    """
    valid, key, value, step = rows.valid, rows.key, rows.value, rows.next
    pairs: list[tuple[bytes, bytes]] = []
    append = pairs.append
    rows.seek(lower)
    while valid():
        append((key(), value()))
        if len(pairs) == limit:
            return pairs
        step()
    rows.status()
    return pairs


def _open_database(path: Path, config: StoreConfig) -> Rdict:
    options = _options(config)
    try:
        # The default column family is named outright: without it, RocksDB keeps the options
        # that an older release wrote into the folder, and new ones have no effect.
        return Rdict(str(path), options, {"default": options})
    except Exception as error:  # rocksdict has no narrower class
        text = str(error)
        if "lock hold by current process" in text or "While lock file" in text:
            raise ConfigError(
                f"the store's folder {path} is in use by another process; give each process "
                "of this machine its own DUEWHEEL_STATE_DIR"
            ) from error
        if _is_corruption(text):
            raise _CorruptError(text) from error
        raise ConfigError(
            f"the store in {path} cannot be opened ({text}); mend the cause or change "
            "DUEWHEEL_STATE_DIR"
        ) from error


def _is_corruption(text: str) -> bool:
    """Damaged content, a file that the database names but that is gone included."""
    return text.startswith("Corruption") or "No such file or directory" in text


def _options(config: StoreConfig) -> Options:
    """Everything we rely on, written out, defaults included."""
    table = BlockBasedOptions()
    table.set_block_cache(Cache(config.block_cache_bytes))
    table.set_block_size(16 << 10)  # bytes; scans are long, and the index is a quarter of 4 KiB's
    table.set_cache_index_and_filter_blocks(True)  # else they grow outside the cache's bound
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, block_based=False)  # 10 bits a key: 1 % of absent keys cost a read
    options = Options(raw_mode=True)
    options.create_if_missing(create_if_missing=True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(config.write_buffer_bytes)
    options.set_max_write_buffer_number(config.write_buffers_max)
    options.set_max_open_files(config.open_files_max)
    options.set_max_background_jobs(config.background_jobs_max)
    options.set_level_compaction_dynamic_level_bytes(True)
    # Fired one-shots leave tombstones. A file with 2,000 deletions within 10,000 entries is
    # merged soon: five times faster where a scan has to walk over them.
    options.add_compact_on_deletion_collector_factory(10_000, 2_000, 0.0)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(4 << 20)  # bytes of RocksDB's own information log
    options.set_stats_dump_period_sec(0)
    return options
