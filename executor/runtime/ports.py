"""What the loop needs of Kafka, as protocols; the real ones are in `scheduler.kafka`."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from scheduler.core.records import Dispatch, Outgoing
from scheduler.kafka.ownership import Fence, OwnershipChange
from scheduler.kafka.positions import Position
from scheduler.kafka.reader import Batch
from scheduler.kafka.transaction import OffsetCommit, Outcome


class Group(Protocol):
    """Who owns which partition of ``runs``."""

    def poll(self, timeout_s: float = 0.0) -> OwnershipChange:
        """Serve the group; what changed since the last call."""
        ...

    def fence(self) -> AbstractContextManager[Fence]:
        """Proof of ownership for one transaction. Raises `FencedError` when there is none."""
        ...

    def close(self, deadline_s: float) -> None:
        """Leave the group."""
        ...


class Log(Protocol):
    """Records of chosen partitions, read committed."""

    def add(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Read these partitions from these offsets on."""
        ...

    def remove(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions no more."""
        ...

    def poll(self, max_records: int, timeout_s: float) -> Batch:
        """What can be read now."""
        ...

    def close(self, deadline_s: float) -> None:
        """Release the client."""
        ...


class Answers(Protocol):
    """Committed offsets, asked for without waiting."""

    def request(self, partitions: Iterable[int]) -> None:
        """Ask, waiting for transactions that are pending."""
        ...

    def drain(self) -> list[Position]:
        """Answers since the last call."""
        ...

    def close(self, deadline_s: float) -> None:
        """Release the clients."""
        ...


class Committer(Protocol):
    """One transaction at a time."""

    def commit(self, fence: Fence, records: Iterable[Outgoing | Dispatch],
               offsets: Mapping[tuple[str, int], OffsetCommit]) -> Outcome:  # fmt: skip
        """All of it or nothing."""
        ...

    def close(self, deadline_s: float) -> None:
        """Release the client."""
        ...
