"""Writes of a decision in the making: visible to it, to nobody else, until it is committed."""

from scheduler.core.ports import OrderedStore, Write


class Staging:
    """An overlay over the ordered store. The store itself is never changed through it."""

    def __init__(self, store: OrderedStore) -> None:
        self._store = store
        self._writes: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        """The staged value, else the stored one."""
        if key in self._writes:
            return self._writes[key]
        return self._store.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Stage a value."""
        self._writes[key] = value

    def delete(self, key: bytes) -> None:
        """Stage a deletion."""
        self._writes[key] = None

    def scan(self, lower: bytes, upper: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Stored pairs of the range, those deleted here left out (new ones are not seen)."""
        pairs = self._store.scan(lower, upper, limit)
        return [pair for pair in pairs if self._writes.get(pair[0], pair[1]) is not None]

    def writes(self) -> list[Write]:
        """All writes, one per key."""
        return list(self._writes.items())
