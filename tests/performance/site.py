"""What a bench gets to work with: a Kafka, folders, fresh names, and how much to do."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from devkafka.jars import kafka_version
from devkafka.provide import Provided, data_folder, provide
from scheduler.contract.topics import TopicCatalog, load_catalog
from scheduler.kafka.admin import KafkaAdmin, apply
from tests.performance.figure import Figure

ROOT = Path(__file__).resolve().parents[2]


class Site:
    """Lazily started surroundings of the benches; close it at the end.

    Attributes:
        scale: share of the full amount of work, in (0, 1].
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._kafka: Provided | None = None
        self._folder: Path | None = None
        self._prefixes = 0

    def count(self, full: int) -> int:
        """``full`` cut down to the scale of this run, at least 1,000."""
        return max(1_000, int(full * self.scale))

    def bootstrap(self) -> str:
        """A real Kafka's ``bootstrap.servers``; the first call may start one."""
        if self._kafka is None:
            shutil.rmtree(data_folder(ROOT, "bench"), ignore_errors=True)
            self._kafka = provide(ROOT, "bench")
        return self._kafka.bootstrap

    def kafka_conditions(self) -> str:
        """Which Kafka that is, for the figures' conditions."""
        self.bootstrap()
        origin = self._kafka.origin if self._kafka else ""
        return "Kafka configured outside" if origin == "configured" else f"Kafka {kafka_version()}"

    def topics(self) -> TopicCatalog:
        """Freshly created topics of topics.yaml under a prefix of their own."""
        self._prefixes += 1
        catalog = load_catalog(prefix=f"bench-{self._prefixes}.")
        apply(catalog, KafkaAdmin({"bootstrap.servers": self.bootstrap()}))
        return catalog

    def folder(self, name: str) -> Path:
        """A path for a bench's files; nothing is there yet."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="duewheel-bench-"))
        return self._folder / name

    def close(self) -> None:
        """Stop Kafka if it was started here, and remove the files."""
        if self._kafka is not None:
            self._kafka.stop()
            if self._kafka.origin == "jars":
                shutil.rmtree(data_folder(ROOT, "bench"), ignore_errors=True)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


Bench = Callable[[Site], list[Figure]]
