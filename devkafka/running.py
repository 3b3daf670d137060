"""Finding and stopping a cluster that another process has started.

`make kafka` leaves a cluster running; `make run` uses it and `make kafka-down` ends it. A broker
is known by the process id in its folder, believed only while that process is a Java process with
the folder's properties on its command line.
"""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

_STOP_S = 30.0
_POLL_S = 0.1


def bootstrap(folder: Path) -> str | None:
    """Return ``bootstrap.servers`` of the cluster in ``folder``, or ``None`` if none runs."""
    state = folder / "cluster.json"
    if not state.is_file() or not _processes(folder):
        return None
    return ",".join(f"127.0.0.1:{client}" for client, _ in json.loads(state.read_text())["ports"])


def stop(folder: Path, deadline_s: float = _STOP_S) -> int:
    """End every broker of the cluster in ``folder``; return how many ran.

    Args:
        folder: the cluster's own.
        deadline_s: a broker that has not ended by then is killed.
    """
    processes = _processes(folder)
    for pid in processes:
        os.kill(pid, signal.SIGTERM)
    if not _gone(processes, deadline_s):
        for pid in _processes(folder):
            os.kill(pid, signal.SIGKILL)
        _gone(processes, deadline_s)
    return len(processes)


def _processes(folder: Path) -> list[int]:
    found = []
    for place in sorted(folder.resolve().glob("broker-*/pid")):
        pid = int(place.read_text())
        if str(place.parent) in _command_line(pid):
            found.append(pid)
    return found


def _command_line(pid: int) -> str:
    proc = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self").exists():
        return proc.read_text().replace("\0", " ") if proc.exists() else ""
    listed = subprocess.run(
        ["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False
    )
    return listed.stdout


def _gone(processes: list[int], deadline_s: float) -> bool:
    until = time.monotonic() + deadline_s
    pause = threading.Event()
    while any(_command_line(pid) for pid in processes):
        if time.monotonic() > until:
            return False
        pause.wait(_POLL_S)
    return True
