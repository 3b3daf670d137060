"""How soon a worker is live: with its store of 100,000 definitions, and with an emptied one."""

import shutil
from pathlib import Path

from scheduler.contract.topics import TopicCatalog
from scheduler.runtime.events import PARTITIONS_ASSIGNED, TAKEOVER_FINISHED
from tests.performance.figure import Figure
from tests.performance.loader import load_definitions, same_definition
from tests.performance.site import Site
from tests.performance.topic_reader import wait_accepted
from tests.performance.worker_process import WorkerProcess

DEFINITIONS = 100_000
DEFINITION = b'{"schedule":"0 0 1 1 *","target":{"kind":"none"}}'
"""Nothing fires meanwhile, unless somebody measures at New Year."""
LIVE_S_MAX = 2.0
RESTORED_MIN = 50_000.0
DEADLINE_S = 120.0


def run(site: Site) -> list[Figure]:
    """Accept all definitions once, then restart with the store and without it."""
    count = site.count(DEFINITIONS)
    catalog = site.topics()
    folder = site.folder("restart")
    load_definitions(site.bootstrap(), catalog, same_definition(count, DEFINITION))
    with WorkerProcess("scheduler", site.bootstrap(), catalog.prefix, folder):
        wait_accepted(
            site.bootstrap(),
            catalog.name("job-status"),
            catalog.partitions("job-status"),
            count,
            DEADLINE_S,
        )
    warm_s = _live_after_s(site, catalog, folder)
    shutil.rmtree(folder)
    empty_s = _live_after_s(site, catalog, folder)
    kept = f"{count:,} definitions over {catalog.partitions('jobs')} partitions"
    return [
        Figure("restart: assignment to live", warm_s, "s", kept).at_most(LIVE_S_MAX),
        Figure("restore from the log", count / empty_s, "definitions/s", kept).at_least(
            RESTORED_MIN
        ),
    ]


def _live_after_s(site: Site, catalog: TopicCatalog, folder: Path) -> float:
    """Seconds from the assignment of all partitions until the last of them is live."""
    with WorkerProcess("scheduler", site.bootstrap(), catalog.prefix, folder) as worker:
        live = worker.wait_for(TAKEOVER_FINISHED, DEADLINE_S)
        assigned = worker.wait_for(PARTITIONS_ASSIGNED, DEADLINE_S)
    return live.at_s - assigned.at_s
