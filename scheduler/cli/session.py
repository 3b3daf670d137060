"""What every command that talks to Kafka begins with: settings, topic names, a clock."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import typer

from scheduler.cli.cluster import Cluster, Deadline
from scheduler.cli.views import JobView, jobs
from scheduler.contract.partition import partition_of
from scheduler.contract.topics import TopicCatalog
from scheduler.core.ports import Clock
from scheduler.core.records import Incoming
from scheduler.runtime.clock import SystemClock
from scheduler.settings import KafkaSettings

DEADLINE_OPTION = typer.Option(
    30.0, "--deadline", min=0.1, help="Seconds to wait for Kafka and the scheduler."
)


@dataclass(frozen=True, slots=True)
class Session:
    """One command's way to the cluster."""

    cluster: Cluster
    catalog: TopicCatalog
    clock: Clock

    def home(self, job_id: str, base: str = "jobs") -> int:
        """Partition of a topic that a job belongs to."""
        return partition_of(job_id.encode(), self.catalog.partitions(base))

    def partitions_of(self, base: str, job_ids: Iterable[str]) -> list[int]:
        """Partitions of a topic that hold these jobs, ascending."""
        return sorted({self.home(job_id, base) for job_id in job_ids})

    def jobs(self, deadline: Deadline, job_id: str | None = None) -> list[JobView]:
        """Every job, or the one asked for (then only its partitions are read)."""
        count = self.catalog.partitions("jobs")
        views = jobs(
            self._scan("jobs", job_id, deadline),
            self._scan("job-status", job_id, deadline),
            lambda key: partition_of(key, count),
        )
        return [view for view in views if job_id in (None, view.job_id)]

    def history(
        self, deadline: Deadline, job_id: str | None, since_ms: int | None
    ) -> Iterator[Incoming]:
        """Records of ``run-history``, of one job's partition if one is asked for."""
        return self._scan("run-history", job_id, deadline, since_ms)

    def _scan(
        self, base: str, job_id: str | None, deadline: Deadline, since_ms: int | None = None
    ) -> Iterator[Incoming]:
        topic = self.catalog.name(base)
        everywhere = self.cluster.partitions(topic, deadline)
        partitions = everywhere if job_id is None else [self.home(job_id, base)]
        return self.cluster.scan(topic, partitions, deadline, since_ms)


def open_session() -> Session:
    """A session by the settings of the environment.

    Raises:
        ConfigError: a setting is not valid.
    """
    settings = KafkaSettings.load()
    return Session(Cluster(settings.client_options()), settings.catalog(), SystemClock())
