"""The in-memory twin of `RocksStore`, for the simulation and for unit tests.

A dict holds the values, a sorted list holds the keys: the standard library's bisect is enough
(an insertion moves pointers only, 4 microseconds among 100,000 keys), so no dependency is added.

It also keeps what is needed to *lose* the writes since the last flush, as a process killed
without a write-ahead log does: see `MemoryStore.after_crash`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from scheduler.core.ports import Write
from scheduler.errors import invariant

_SORT_ABOVE = 64
"""Changed keys of one write above which one pass over all keys beats moving them singly."""


class MemoryStore:
    """An `OrderedStore` in memory.

    Costs, for n keys: ``get`` O(1); ``scan`` O(log n + pairs); ``write`` O(n) pointer moves a
    changed key, or one O(n) pass for large batches; ``drop_range`` O(n).
    """

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        self._before: dict[bytes, bytes | None] = {}
        self._closed = False

    def get(self, key: bytes) -> bytes | None:
        """Value of ``key``, or ``None``."""
        self._check_open()
        return self._values.get(key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Values of ``keys`` in their order; ``None`` where a key is absent."""
        self._check_open()
        return [self._values.get(key) for key in keys]

    def scan(self, lower: bytes, upper: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first ``limit`` pairs with ``lower <= key < upper``, ascending."""
        self._check_open()
        if limit <= 0 or lower >= upper:
            return []
        first = bisect_left(self._keys, lower)
        last = min(bisect_left(self._keys, upper, first), first + limit)
        return [(key, self._values[key]) for key in self._keys[first:last]]

    def write(self, writes: Iterable[Write]) -> None:
        """Apply all writes atomically, in order (a later write of a key wins)."""
        self._check_open()
        outcome = dict(writes)
        added = [k for k, v in outcome.items() if v is not None and k not in self._values]
        removed = [k for k, v in outcome.items() if v is None and k in self._values]
        for key, value in outcome.items():
            self._before.setdefault(key, self._values.get(key))
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._remove_keys(removed)
        self._add_keys(added)

    def drop_range(self, lower: bytes, upper: bytes) -> None:
        """Delete every key with ``lower <= key < upper``."""
        self._check_open()
        first = bisect_left(self._keys, lower)
        last = bisect_left(self._keys, upper, first) if lower < upper else first
        for key in self._keys[first:last]:
            self._before.setdefault(key, self._values.pop(key))
        del self._keys[first:last]

    def flush(self) -> None:
        """Make everything written so far survive `after_crash`."""
        self._check_open()
        self._before.clear()

    def close(self) -> None:
        """Flush; the store is unusable afterwards. Idempotent."""
        self._before.clear()
        self._closed = True

    def after_crash(self) -> "MemoryStore":
        """What the next process finds: the state of the last flush. This store is closed."""
        survivor = MemoryStore()
        survivor.write(self._values.items())
        survivor.write(self._before.items())
        survivor.flush()
        self.close()
        return survivor

    def _add_keys(self, added: list[bytes]) -> None:
        if len(added) > _SORT_ABOVE:
            self._keys.extend(added)
            self._keys.sort()
            return
        for key in added:
            insort(self._keys, key)

    def _remove_keys(self, removed: list[bytes]) -> None:
        if len(removed) > _SORT_ABOVE:
            gone = set(removed)
            self._keys = [key for key in self._keys if key not in gone]
            return
        for key in removed:
            del self._keys[bisect_left(self._keys, key)]

    def _check_open(self) -> None:
        invariant(not self._closed, "the store is closed; open it again before use")
