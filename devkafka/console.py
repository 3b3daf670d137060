"""Kafka's own console producer and consumer, run from its jars.

The point of the contract is that nothing but Kafka is needed to use it; these are the tools every
Kafka comes with, and tests use them as a user would.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from devkafka.broker import Launch
from devkafka.jars import KafkaUnavailable, fetch, java
from devkafka.provide import jar_cache

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"

_MAIN = {
    "console-producer": PRODUCER,
    "console-consumer": CONSUMER,
    "topics": "org.apache.kafka.tools.TopicCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
_HEAP_MB = 256
_NULL = "\\N"
_RUN_S = 60.0
_BLOCK_MS = 10_000
"""How long the producer looks for a topic; a minute by default."""


def tools() -> list[str]:
    """Return the names `command` knows."""
    return sorted(_MAIN)


def command(root: Path, tool: str, arguments: Sequence[str]) -> list[str]:
    """Return the command line that runs one of Kafka's tools.

    Args:
        root: the project's folder, where the jars are cached.
        tool: see `tools`.
        arguments: the tool's own.

    Raises:
        KafkaUnavailable: Java is missing, or the jars cannot be had.
    """
    path = java()
    if path is None:
        raise KafkaUnavailable("Java 17 or newer is needed to run Kafka's console tools")
    launch = Launch(path, fetch(jar_cache(root)).resolve(), _HEAP_MB)
    return launch.command(_MAIN[tool], *arguments)


def produce(
    root: Path, bootstrap: str, topic: str, records: Sequence[tuple[str, str | None]]
) -> None:
    r"""Produce ``(key, value)`` records with Kafka's console producer; ``None`` is a tombstone.

    Raises:
        KafkaUnavailable: the producer fails; the message holds what it said.
    """
    arguments = [
        *("--bootstrap-server", bootstrap, "--topic", topic, "--max-block-ms", str(_BLOCK_MS)),
        *("--property", "parse.key=true", "--property", "key.separator=\t"),
        *("--property", f"null.marker={_NULL}"),
    ]
    lines = "".join(f"{key}\t{_NULL if value is None else value}\n" for key, value in records)
    _run(command(root, "console-producer", arguments), lines, _RUN_S)


def consume(
    root: Path, bootstrap: str, topic: str, count: int, *, deadline_s: float = _RUN_S
) -> list[str]:
    """Return up to ``count`` committed records of a topic, from its beginning, ``key<TAB>value``.

    Args:
        root: the project's folder.
        bootstrap: ``bootstrap.servers``.
        topic: full name.
        count: how many to wait for.
        deadline_s: give up when none came for so long; fewer records are returned then.
    """
    arguments = [
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", str(count)),
        *("--timeout-ms", str(int(deadline_s * 1000))),
        *("--property", "print.key=true", "--property", "key.separator=\t"),
    ]
    line = command(root, "console-consumer", arguments)
    return _run(line, "", deadline_s, may_time_out=True).splitlines()


def _run(line: list[str], text: str, deadline_s: float, *, may_time_out: bool = False) -> str:
    done = subprocess.run(
        line, input=text, capture_output=True, text=True, timeout=deadline_s + _RUN_S, check=False
    )
    # The producer ends with 0 whatever became of its records, but says ERROR; the consumer ends
    # with an error when no more records came in time.
    failed = done.returncode != 0 or " ERROR " in done.stderr
    if failed and not (may_time_out and "TimeoutException" in done.stderr):
        raise KafkaUnavailable(f"Kafka's tool ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
