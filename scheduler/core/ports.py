"""What the core and the loops need from the outside, as protocols.

Each has a real twin and an in-memory twin that pass the same conformance suite.
"""

from collections.abc import Iterable
from typing import Protocol

from scheduler.core.definition import CompiledJob
from scheduler.core.intake import Command, DelayedRun
from scheduler.core.records import Incoming

Write = tuple[bytes, bytes | None]
"""A key with its new value; ``None`` deletes the key."""


class Clock(Protocol):
    """Wall time for *when*, monotonic time for *how long*; never mixed."""

    def now_ms(self) -> int:
        """Wall-clock time, epoch milliseconds."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never steps."""
        ...


class OrderedStore(Protocol):
    """A durable map of byte strings, ordered by key (bytewise)."""

    def get(self, key: bytes) -> bytes | None:
        """Value of ``key``, or ``None``."""
        ...

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Values of ``keys`` in their order; ``None`` where a key is absent."""
        ...

    def scan(self, lower: bytes, upper: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first ``limit`` pairs with ``lower <= key < upper``, ascending.

        Cost: one seek plus the pairs returned. No iterator outlives the call.
        """
        ...

    def write(self, writes: Iterable[Write]) -> None:
        """Apply all writes atomically, in order (a later write of a key wins)."""
        ...

    def drop_range(self, lower: bytes, upper: bytes) -> None:
        """Delete every key with ``lower <= key < upper`` (cheap, lazily reclaimed)."""
        ...

    def flush(self) -> None:
        """Make everything written so far survive a crash of the process."""
        ...

    def close(self) -> None:
        """Flush and release the files; the store is unusable afterwards. Idempotent."""
        ...


class Decoder(Protocol):
    """Validates what comes in and turns it into core values. Every refusal is a value of
    `RequestError`, never anything else, whatever the bytes.
    """

    def job_id(self, key: bytes | None) -> str:
        """The job id a key spells. Raises `DefinitionError`."""
        ...

    def partition(self, key: bytes) -> int:
        """Partition of ``jobs`` that a key belongs to."""
        ...

    def job(self, job_id: str, value: bytes, offset: int) -> CompiledJob:
        """A compiled definition. Raises `DefinitionError`."""
        ...

    def delayed(self, record: Incoming) -> DelayedRun:
        """A record of ``runs-retry``. Raises `RequestError`."""
        ...

    def command(self, record: Incoming) -> Command:
        """A record of ``job-commands``. Raises `RequestError`."""
        ...
