"""One worker fires one cohort of 200,000 jobs: committed runs/s, beside the bare loop's."""

import time

from confluent_kafka import Message

from scheduler.contract.topics import TopicCatalog
from scheduler.core.instant import format_instant
from scheduler.runtime.events import TAKEOVER_FINISHED
from tests.performance.baseline import Run, rate_figure
from tests.performance.figure import Figure
from tests.performance.lateness import run_at_ms
from tests.performance.loader import load_definitions, same_definition
from tests.performance.site import Site
from tests.performance.topic_reader import TopicReader, wait_accepted
from tests.performance.worker_process import WorkerProcess

JOBS = 200_000
DEFINITION = b'{"schedule":"* * * * *","target":{"kind":"none"}}'
MINUTE_MS = 60_000
RATIO_MIN = 0.5
DEADLINE_S = 120.0


def run(site: Site) -> list[Figure]:
    """Load, wait until all is accepted, measure one fire, then commit the same bytes bare."""
    count = site.count(JOBS)
    catalog = site.topics()
    load_definitions(site.bootstrap(), catalog, same_definition(count, DEFINITION))
    folder = site.folder("dispatch-rate")
    with WorkerProcess("scheduler", site.bootstrap(), catalog.prefix, folder) as worker:
        worker.wait_for(TAKEOVER_FINISHED, DEADLINE_S)
        accepted_s = wait_accepted(
            site.bootstrap(),
            catalog.name("job-status"),
            catalog.partitions("job-status"),
            count,
            DEADLINE_S,
        )
        due_ms, fired = _one_fire(site, catalog, count)
    bare = rate_figure(site, catalog, _runs(fired))
    return [
        _acceptance(count, accepted_s),
        bare,
        _rate(fired, catalog, bare),
        Figure("dispatch: first run after the instant", _first_ms(fired) - due_ms, "ms"),
    ]


def _one_fire(site: Site, catalog: TopicCatalog, count: int) -> tuple[int, list[Message]]:
    """The instant of the next undisturbed fire, and its run commands."""
    now_ms = int(time.time() * 1_000)
    due_ms = -(-(now_ms + 5_000) // MINUTE_MS) * MINUTE_MS
    # Not synchronisation: the fire before this one is over, and nothing else competes.
    time.sleep((due_ms - 2_000 - now_ms) / 1_000)
    reader = TopicReader(
        site.bootstrap(), catalog.name("runs"), catalog.partitions("runs"), at_end=True
    )
    try:
        _wait_until_over(reader, count)
        return due_ms, _commands_of(reader, due_ms, count)
    finally:
        reader.close()


def _wait_until_over(reader: TopicReader, count: int) -> None:
    """Reading while the fire goes on would take its processor time: only ask for the ends."""
    end_s = time.monotonic() + DEADLINE_S
    while reader.grown() < count:
        if time.monotonic() > end_s:
            raise TimeoutError(f"{reader.grown():,} of {count:,} runs within {DEADLINE_S:g} s")
        time.sleep(0.5)


def _commands_of(reader: TopicReader, due_ms: int, count: int) -> list[Message]:
    found: dict[bytes, Message] = {}
    for message in reader.messages(DEADLINE_S):
        if run_at_ms(message.value() or b"") != due_ms:
            continue
        key = message.key() or b""
        if key in found:
            raise AssertionError(f"{key!r} was dispatched twice for {format_instant(due_ms)}")
        found[key] = message
        if len(found) == count:
            return list(found.values())
    raise TimeoutError(f"{len(found):,} of {count:,} runs for {format_instant(due_ms)}")


def _rate(fired: list[Message], catalog: TopicCatalog, bare: Figure) -> Figure:
    seconds = (max(message.timestamp()[1] for message in fired) - _first_ms(fired)) / 1_000
    conditions = (
        f"{len(fired):,} jobs of one cohort over {catalog.partitions('jobs')} partitions, from "
        "the first dispatch to the last (its own commit not included)"
    )
    figure = Figure("dispatch", len(fired) / seconds, "committed runs/s", conditions)
    return figure.beside(bare).ratio_at_least(RATIO_MIN)


def _first_ms(fired: list[Message]) -> int:
    return min(message.timestamp()[1] for message in fired)


def _acceptance(count: int, seconds: float) -> Figure:
    conditions = f"{count:,} new definitions, taken up and reported in job-status"
    return Figure("acceptance", count / seconds, "definitions/s", conditions)


def _runs(fired: list[Message]) -> list[Run]:
    runs = [(m.partition() or 0, m.key() or b"", m.value() or b"") for m in fired]
    return sorted(runs)
