"""The development Kafka's container, as data: read from compose.yaml, so that it is said once."""

import shutil
import subprocess
from pathlib import Path

import yaml

COMPOSE = Path(__file__).with_name("compose.yaml")
PORT_VARIABLE = "DUEWHEEL_KAFKA_PORT"

_ANSWER_S = 10.0
_service = yaml.safe_load(COMPOSE.read_text())["services"]["kafka"]

IMAGE = str(_service["image"])


def environment(port: int) -> dict[str, str]:
    """Return the container's environment for clients that come in at ``port``."""
    return {
        name: str(value).replace(f"${{{PORT_VARIABLE}:-9092}}", str(port))
        for name, value in _service["environment"].items()
    }


def docker_answers() -> bool:
    """Whether a Docker engine answers, not merely whether the command is installed."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        done = subprocess.run([docker, "info"], capture_output=True, timeout=_ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
