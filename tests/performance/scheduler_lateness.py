"""Lateness of one worker at 2,800 runs/s, spread over each second, beside the bare loop's."""

import time
from collections.abc import Iterator

from scheduler.contract.topics import TopicCatalog
from scheduler.core.instant import format_instant
from scheduler.runtime.events import TAKEOVER_FINISHED
from tests.performance import baseline
from tests.performance.baseline import LATENESS_S, PERIOD_MS, RUNS_A_SECOND
from tests.performance.figure import Figure
from tests.performance.lateness import LatenessReader, lateness_figures
from tests.performance.loader import load_definitions
from tests.performance.site import Site
from tests.performance.topic_reader import wait_accepted
from tests.performance.worker_process import WorkerProcess

P50_MS_MAX = 60.0
P99_MS_MAX = 250.0
DEADLINE_S = 60.0


def run(site: Site) -> list[Figure]:
    """The bare loop first, then the worker; both read by the same polling reader."""
    bare = baseline.run_lateness(site)
    late_ms = _worker_lateness_ms(site)
    conditions = (
        f"{RUNS_A_SECOND:,} jobs each second, due in steps of {PERIOD_MS} ms, "
        f"{site.kafka_conditions()} beside it"
    )
    p50, p99 = lateness_figures("scheduler: lateness", late_ms, conditions)
    return [
        *bare,
        p50.beside(bare[0]).at_most(P50_MS_MAX),
        p99.beside(bare[1]).at_most(P99_MS_MAX),
    ]


def _worker_lateness_ms(site: Site) -> list[float]:
    catalog = site.topics()
    load_definitions(site.bootstrap(), catalog, _spread_definitions())
    folder = site.folder("lateness")
    with WorkerProcess("scheduler", site.bootstrap(), catalog.prefix, folder) as worker:
        worker.wait_for(TAKEOVER_FINISHED, DEADLINE_S)
        _wait_accepted(site, catalog)
        reader = LatenessReader(site.bootstrap(), catalog.name("runs"), catalog.partitions("runs"))
        try:
            reader.lateness_ms(5.0)  # what was missed while starting is not this figure's
            return reader.lateness_ms(max(3.0, LATENESS_S * site.scale))
        finally:
            reader.close()


def _wait_accepted(site: Site, catalog: TopicCatalog) -> None:
    topic, partitions = catalog.name("job-status"), catalog.partitions("job-status")
    wait_accepted(site.bootstrap(), topic, partitions, RUNS_A_SECOND, DEADLINE_S)


def _spread_definitions() -> Iterator[tuple[bytes, bytes]]:
    """Jobs that run each second, an equal share of them in each period of the second."""
    begin_ms = int(time.time()) * 1_000
    for number in range(RUNS_A_SECOND):
        start = format_instant(begin_ms + number * PERIOD_MS % 1_000)
        value = f'{{"every":"PT1S","start_at":"{start}","target":{{"kind":"none"}}}}'
        yield b"bench-%07d" % number, value.encode()
