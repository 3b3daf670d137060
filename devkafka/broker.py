"""One Kafka broker as a child process: start, stop, kill, freeze, start again.

A broker keeps its port and its data folder for life, so that a test can take it away and bring it
back. It is broker and KRaft controller at once.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devkafka.jars import LOG_CONFIG, KafkaUnavailable, classpath

READY_S = 90.0
"""A broker is up in about 6 s on an idle machine; a busy one with two cores needs far more."""

STOP_S = 30.0

_READY_LINE = "Kafka Server started"
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a broker's Java process.

    Attributes:
        java: path of the ``java`` command.
        jars: folder with Kafka's jars.
        heap_mb: largest Java heap, in megabytes.
    """

    java: str
    jars: Path
    heap_mb: int = 512

    def command(self, main: str, *arguments: str) -> list[str]:
        """Return the command line that runs Kafka's Java class ``main``."""
        return [
            self.java,
            f"-Xmx{self.heap_mb}m",
            "-XX:+UseSerialGC",  # few threads: two cores serve the brokers and the tests alike
            f"-Dlog4j2.configurationFile={LOG_CONFIG}",
            "-cp",
            classpath(self.jars),
            main,
            *arguments,
        ]


@dataclass(slots=True)
class Broker:
    """One broker process.

    Attributes:
        node_id: its id in the cluster, from 1.
        port: where clients reach it, on 127.0.0.1.
        folder: its own folder: data, properties, log and process id.
        launch: how Java is called.
    """

    node_id: int
    port: int
    folder: Path
    launch: Launch
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _log_start: int = field(default=0, repr=False)

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """Process id while the process runs, else ``None``."""
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def alive(self) -> bool:
        """Whether the process runs (a frozen one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """The broker's own log, appended to at every start."""
        return self.folder / "broker.log"

    def format(self, properties: Mapping[str, str], cluster_id: str) -> None:
        """Write the broker's properties and format its storage, unless that was done before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{name}={value}" for name, value in sorted(properties.items())]
        self._properties.write_text("\n".join(lines) + "\n")
        command = self.launch.command(
            "kafka.tools.StorageTool",
            *("format", "--ignore-formatted", "-t", cluster_id, "-c", str(self._properties)),
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise KafkaUnavailable(f"formatting {self.folder} failed:\n{done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start the process on its old port and data; `wait_ready` says when it serves.

        Raises:
            KafkaUnavailable: it is already running.
        """
        if self.alive:
            raise KafkaUnavailable(f"broker {self.node_id} already runs as {self.pid}")
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.launch.command("kafka.Kafka", str(self._properties)),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # Ctrl-C in the terminal is for the launcher, which then stops its brokers in order.
                start_new_session=True,
            )
        (self.folder / "pid").write_text(str(self._process.pid))

    def wait_ready(self, deadline_s: float = READY_S) -> None:
        """Wait until the broker says it has started and its port accepts connections.

        Raises:
            KafkaUnavailable: it ended or stayed silent; the message holds the end of its log.
        """
        until = time.monotonic() + deadline_s
        while not (self._said_ready() and self._accepts()):
            if self._ended_within(_POLL_S):
                raise KafkaUnavailable(f"broker {self.node_id} ended at start:\n{self.log_tail()}")
            if time.monotonic() > until:
                raise KafkaUnavailable(
                    f"broker {self.node_id} not ready after {deadline_s:g} s:\n{self.log_tail()}"
                )

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM) without waiting for it."""
        self._signal(signal.SIGTERM)

    def stop(self, deadline_s: float = STOP_S) -> None:
        """End the process in good order; kill it when the deadline passes."""
        if not self.alive:
            return
        self._signal(signal.SIGCONT)
        self.terminate()
        if not self._ended_within(deadline_s):
            self.kill()
        (self.folder / "pid").unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the process (SIGKILL), as a power cut would, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self._ended_within(STOP_S)

    def freeze(self) -> None:
        """Stop the process in its tracks (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def restart(self, deadline_s: float = READY_S) -> None:
        """Start an ended broker again on the same port and data, and wait until it serves."""
        self.start()
        self.wait_ready(deadline_s)

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the broker's log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _said_ready(self) -> bool:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return _READY_LINE.encode() in log.read()

    def _accepts(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
                return True
        except OSError:
            return False

    def _ended_within(self, deadline_s: float) -> bool:
        if self._process is None:
            return True
        try:
            self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            os.kill(self._process.pid, number)
