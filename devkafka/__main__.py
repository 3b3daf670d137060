"""``python -m devkafka which | up | down | <one of Kafka's tools> ...``: Kafka alone.

``which`` says where Kafka would come from, or what to do when there is none. ``up`` starts the
development cluster and leaves it running; ``down`` ends it; ``console-producer`` and the like run
Kafka's own tools with their own arguments.
"""

import os
import sys
from pathlib import Path

from devkafka import running
from devkafka.console import command, tools
from devkafka.jars import KafkaUnavailable
from devkafka.provide import choose, data_folder, provide, stop_docker

_NAME = "dev"


def main(arguments: list[str]) -> int:
    """Do what the command line says and return the exit code."""
    root = Path.cwd()
    match arguments:
        case ["which"]:
            print(f"Kafka: {choose()}")
        case ["up"]:
            provided = provide(root, _NAME)
            print(f"Kafka ({provided.origin}) is up. In a shell that is to use it:")
            print(f"  export KAFKA_BOOTSTRAP_SERVERS={provided.bootstrap}")
        case ["down"]:
            stopped = running.stop(data_folder(root, _NAME)) + stop_docker()
            print(f"stopped {stopped} broker(s)")
        case [tool, *rest] if tool in tools():
            line = command(root, tool, rest)
            os.execv(line[0], line)
        case _:
            verbs = ["which", "up", "down", *tools()]
            print(f"usage: python -m devkafka {' | '.join(verbs)}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KafkaUnavailable as error:
        print(error, file=sys.stderr)
        sys.exit(1)
