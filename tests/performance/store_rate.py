"""Rates of the store: what a fire (scan), an acceptance (get, write) may cost."""

import random
import threading
import time
from collections.abc import Callable, Iterator

from scheduler.core.ports import OrderedStore, Write
from scheduler.store.rocks import open_store
from tests.performance.figure import Figure
from tests.performance.site import Site

PARTITIONS = 256
BATCH = 5_000
"""Entries a write: the most that a caller should put into one."""
SCAN = 2_000
KEY_BYTES = 100
VALUE_BYTES = 400


def run(site: Site) -> list[Figure]:
    """Write, scan and get ``KEY_BYTES`` + ``VALUE_BYTES`` pairs over 256 partitions."""
    count = site.count(200_000)
    store, _ = open_store(site.folder("store-rate"))
    batches = list(_batches(count))
    write_s, stall_s = _with_observer(lambda: _write_all(store, batches))
    flush_s = _seconds(store.flush)
    scan_s = min(_seconds(lambda: _scan_all(store, count)) for _ in range(3))
    keys = [key for batch in batches for key, _ in batch][:: max(1, count // 20_000)]
    get_s = _seconds(lambda: [store.get(key) for key in keys])
    many_s = _seconds(lambda: [store.get_many(keys[i : i + 100]) for i in range(0, len(keys), 100)])
    store.close()
    pairs = f"{count:,} pairs, keys {KEY_BYTES} B, values {VALUE_BYTES} B"
    return [
        Figure("store scan", count / scan_s, "pairs/s", f"{pairs}, {SCAN:,} a call").at_least(7e5),
        Figure("store write", count / write_s, "entries/s", f"{pairs}, {BATCH:,} a batch"),
        Figure("store write: longest stall of another thread", stall_s * 1e3, "ms", pairs),
        Figure("store flush", flush_s * 1e3, "ms", "what was left in the write buffer"),
        Figure("store get", len(keys) / get_s, "keys/s", f"one at a time, from {pairs}"),
        Figure("store get_many", len(keys) / many_s, "keys/s", f"100 a call, from {pairs}"),
    ]


def _batches(count: int) -> Iterator[list[Write]]:
    source = random.Random(1)
    values = [source.randbytes(VALUE_BYTES) for _ in range(1_000)]
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        yield [(_key(number), values[number % 1_000]) for number in numbers]


def _write_all(store: OrderedStore, batches: list[list[Write]]) -> None:
    for batch in batches:
        store.write(batch)


def _key(number: int) -> bytes:
    head = b"m" + (number % PARTITIONS).to_bytes(2, "big")
    return head + b"cohort".ljust(KEY_BYTES - 7, b"-") + number.to_bytes(4, "big")


def _scan_all(store: OrderedStore, expected: int) -> None:
    seen = 0
    for partition in range(PARTITIONS):
        lower = b"m" + partition.to_bytes(2, "big")
        upper = b"m" + (partition + 1).to_bytes(2, "big")
        while page := store.scan(lower, upper, SCAN):
            seen += len(page)
            if len(page) < SCAN:
                break
            lower = page[-1][0] + b"\x00"
    if seen != expected:
        raise AssertionError(f"scanned {seen} pairs, expected {expected}")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _with_observer(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds the work takes, and the longest that a thread waking every ms was held up."""
    over = threading.Event()
    stalls = [0.0]

    def observe() -> None:
        while not over.is_set():
            began = time.perf_counter()
            over.wait(0.001)
            stalls.append(time.perf_counter() - began - 0.001)

    observer = threading.Thread(target=observe)
    observer.start()
    try:
        seconds = _seconds(work)
    finally:
        over.set()
        observer.join()
    return seconds, max(stalls)
