"""Where an executor's records go: topics of one queue, with their partition counts."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorRoutes:
    """Full topic names, prefix and queue included.

    Attributes:
        partition_of: murmur2 of a key modulo a count, as Java clients have it.
        run_state: has as many partitions as ``runs``: a run's state lies in the partition its
            command came from.
    """

    partition_of: Callable[[bytes, int], int]
    runs: str = "runs"
    run_state: str = "run-state"
    history: str = "run-history"
    retries: str = "runs-retry"
    dead_letters: str = "runs-dead-letter"
    history_partitions: int = 64
    retry_partitions: int = 256
    dead_letter_partitions: int = 64
