"""Children are started again when that helps, and ended together."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from duewheel.supervisor import PAUSE_S, Child, may_restart, stop_all
from scheduler.errors import ConfigError, ExitCode

DEADLINE_S = 30.0


def _child(folder: Path, program: str) -> Child:
    return Child("child", [sys.executable, "-c", program], dict(os.environ), folder / "log")


def _ended(child: Child) -> None:
    child.wait(time.monotonic() + DEADLINE_S)


def _wait_for_log(child: Child, text: str) -> None:
    pause, until = threading.Event(), time.monotonic() + DEADLINE_S
    while text not in (child.log.read_text() if child.log.exists() else ""):
        assert time.monotonic() < until, f"the child never said {text}"
        pause.wait(0.01)


@pytest.mark.parametrize("code", [ExitCode.CLIENT_FATAL, ExitCode.WATCHDOG, ExitCode.INVARIANT, -9])
def test_some_ends_are_worth_a_restart(code: int) -> None:
    assert may_restart(code)


@pytest.mark.parametrize(
    "code",
    [ExitCode.OK, ExitCode.FAILURE, ExitCode.USAGE, ExitCode.CONFIG, ExitCode.TZDATA],
)
def test_other_ends_are_final(code: int) -> None:
    assert not may_restart(code)


def test_a_child_that_asks_for_it_is_started_again_after_a_pause(tmp_path: Path) -> None:
    child = _child(tmp_path, f"print('ran', flush=True); raise SystemExit({ExitCode.WATCHDOG:d})")
    child.start()
    _ended(child)
    now_s = time.monotonic()
    assert "exit code 5 (WATCHDOG)" in (child.look(now_s) or "")
    assert child.look(now_s + PAUSE_S[0] / 2) is None
    assert child.restarts == 0
    assert (child.look(now_s + PAUSE_S[0]) or "").startswith("child started again")
    assert child.restarts == 1
    _ended(child)
    assert child.log.read_text() == "ran\nran\n"


def test_pauses_grow_while_a_child_keeps_ending(tmp_path: Path) -> None:
    child = _child(tmp_path, f"raise SystemExit({ExitCode.CLIENT_FATAL:d})")
    child.start()
    for pause_s in (*PAUSE_S, PAUSE_S[-1]):
        _ended(child)
        now_s = time.monotonic()
        assert f"again in {pause_s:g} s" in (child.look(now_s) or "")
        assert (child.look(now_s + pause_s) or "").startswith("child started again")
    _ended(child)


def test_an_end_that_stays_ends_the_supervisor(tmp_path: Path) -> None:
    child = _child(tmp_path, f"raise SystemExit({ExitCode.CONFIG:d})")
    child.start()
    _ended(child)
    with pytest.raises(ConfigError, match=r"child ended with exit code 3 \(CONFIG\); see .*log"):
        child.look(time.monotonic())


def test_stopping_ends_every_child(tmp_path: Path) -> None:
    children = [_child(tmp_path / name, "import signal; signal.pause()") for name in ("a", "b")]
    for child in children:
        child.start()
    assert all(child.pid is not None for child in children)
    stop_all(children)
    assert [child.pid for child in children] == [None, None]


def test_a_child_that_will_not_end_is_killed(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); {}"
    child = _child(tmp_path, deaf.format("signal.pause()"))
    child.start()
    _wait_for_log(child, "deaf")
    child.stop()
    child.wait(time.monotonic() + 0.2)
    assert child.pid is None


def test_ctrl_c_in_the_terminal_does_not_reach_a_child(tmp_path: Path) -> None:
    child = _child(tmp_path, "import signal; signal.pause()")
    child.start()
    pid = child.pid
    assert pid is not None
    assert os.getpgid(pid) != os.getpgid(0)
    os.kill(pid, signal.SIGKILL)
    child.wait(time.monotonic() + DEADLINE_S)
