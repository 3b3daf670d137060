"""A process that writes numbered batches until it is killed; for the durability test.

Batch n puts its own row and moves the position to n. What it has done goes to standard
output, one line each: ``written n``, ``flushed n``.
"""

import itertools
import sys
from pathlib import Path

from scheduler.store.rocks import StoreConfig, open_store

POSITION = b"position"
FLUSH_AT = 500
SMALL_BUFFERS = StoreConfig(write_buffer_bytes=64 << 10)
"""So that RocksDB also flushes by itself, at moments of its own choice."""


def row_key(number: int) -> bytes:
    """Key of what batch ``number`` brings."""
    return b"row" + number.to_bytes(8, "big")


def main(path: Path) -> None:
    """Write until the end of the process."""
    store, _ = open_store(path, SMALL_BUFFERS)
    for number in itertools.count(1):
        store.write([(row_key(number), bytes(300)), (POSITION, str(number).encode())])
        print("written", number, flush=True)
        if number == FLUSH_AT:
            store.flush()
            print("flushed", number, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
