"""A guarded call that hangs ends the process; one that returns in time, or is frozen, does not."""

import subprocess
import sys
import threading

from scheduler.errors import ExitCode
from scheduler.kafka.watchdog import FROZEN_TICKS, TICK_S, Watchdog, run_bounded

HUNG = """
import threading
from scheduler.kafka.watchdog import WATCHDOG
with WATCHDOG.guard("commit", 0.3):
    threading.Event().wait(30)
"""


def test_a_hung_call_ends_the_process_with_its_own_exit_code() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HUNG], capture_output=True, text=True, timeout=20, check=False
    )
    assert ended.returncode == ExitCode.WATCHDOG
    assert ended.stderr == "watchdog: commit did not return within 0.3 s; ending\n"


def test_the_call_that_hangs_is_named_among_several() -> None:
    named: list[str] = []
    bitten = threading.Event()

    def end(line: str) -> None:
        named.append(line)
        bitten.set()

    watchdog = Watchdog(end)
    with watchdog.guard("long", 60), watchdog.guard("hangs", 0.1):
        assert bitten.wait(10)
    assert named == ["watchdog: hangs did not return within 0.1 s; ending"]


def test_a_call_that_returned_is_forgotten() -> None:
    named: list[str] = []
    watchdog = Watchdog(named.append)
    with watchdog.guard("quick", 1.0):
        pass
    watchdog._check(5.0)
    assert named == []


def test_time_in_which_the_process_was_stopped_counts_little() -> None:
    """The watchdog's own tick says how long the process ran, not how late it is."""
    assert FROZEN_TICKS * TICK_S < 5.0  # under the smallest deadline that settings allow


def test_what_does_not_end_is_left_behind() -> None:
    never = threading.Event()
    assert run_bounded("ends", lambda: None, 10)
    assert not run_bounded("hangs", lambda: never.wait(30), 0.05)
    never.set()
