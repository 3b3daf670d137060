"""Names and partition counts of the topics the scheduler writes, prefix included."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Routes:
    """Topic names for one prefix. Counts divide each other, so partitions nest."""

    prefix: str = ""
    job_partitions: int = 256
    run_partitions: int = 64
    cursor_partitions: int = 16

    @property
    def jobs(self) -> str:
        """Topic of definitions."""
        return f"{self.prefix}jobs"

    @property
    def commands(self) -> str:
        """Topic of commands to jobs."""
        return f"{self.prefix}job-commands"

    @property
    def retries(self) -> str:
        """Topic of delayed runs."""
        return f"{self.prefix}runs-retry"

    @property
    def status(self) -> str:
        """Topic of what became of definitions."""
        return f"{self.prefix}job-status"

    @property
    def history(self) -> str:
        """Topic of what became of runs."""
        return f"{self.prefix}run-history"

    @property
    def cursors(self) -> str:
        """Topic of cursors' backups and facts."""
        return f"{self.prefix}cursors"

    def runs(self, queue: str) -> str:
        """Topic of a queue's run commands."""
        return f"{self.prefix}runs" if queue == "default" else f"{self.prefix}runs.{queue}"
