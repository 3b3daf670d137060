"""Kafka's own jars, fetched by Maven into a folder of the project and kept there.

``pom.xml`` beside this file pins the versions; nothing else does.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
JAVA_MAJOR_MIN = 17
"""Kafka 4 brokers do not start on anything older."""

_COMPLETE = ".complete"
_FETCH_S = 600.0


class KafkaUnavailable(Exception):
    """No Kafka can be had on this machine; the message says what to install or set."""


def kafka_version() -> str:
    """Return the Kafka version that ``pom.xml`` pins."""
    found = re.search(r"<kafka\.version>(.+?)</kafka\.version>", POM.read_text())
    if found is None:
        raise KafkaUnavailable(f"{POM} names no kafka.version")
    return found.group(1)


def java() -> str | None:
    """Return the path of a ``java`` of at least `JAVA_MAJOR_MIN`, or ``None``."""
    home = os.environ.get("JAVA_HOME")
    candidates = ([str(Path(home) / "bin" / "java")] if home else []) + ["java"]
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is not None and _java_major(path) >= JAVA_MAJOR_MIN:
            return path
    return None


def fetch(cache: Path) -> Path:
    """Return the folder with the jars below ``cache``, asking Maven for them the first time.

    Raises:
        KafkaUnavailable: Maven is missing, or cannot fetch them.
    """
    folder = cache / kafka_version()
    if (folder / _COMPLETE).is_file():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable("Maven (mvn) is needed once, to fetch Kafka's jars; install it")
    folder.mkdir(parents=True, exist_ok=True)
    _copy_dependencies(maven, folder)
    (folder / _COMPLETE).touch()
    return folder


def classpath(folder: Path) -> str:
    """Return a Java class path of every jar in ``folder``."""
    return str(folder / "*")


def _copy_dependencies(maven: str, folder: Path) -> None:
    command = [
        maven,
        "--batch-mode",
        "--quiet",
        f"--file={POM}",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={folder.resolve()}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise KafkaUnavailable(f"Maven could not fetch Kafka's jars:\n{tail}")


def _java_major(path: str) -> int:
    done = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found else 0
