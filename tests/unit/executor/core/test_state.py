"""What is remembered, for how long, and how large it may get."""

from typing import Any

import pytest

from executor.core.codec import decode_state, encode_state
from executor.core.command import JobDeleted
from executor.core.machine import decide_command, decide_job_deleted, decide_result
from executor.core.outcome import Failed, Result, Succeeded
from executor.core.partition import Draft, Partition, summary_of
from executor.core.settled import PROMISES_MAX, is_settled, promise
from executor.core.state import INLINE_MAX, REMEMBER_MS, StateChange
from scheduler.core.instant import format_instant
from scheduler.errors import ConfigError, RequestError
from tests.unit.executor.building import KAFKA, T0, command, commit, context


def run_once(state: Partition, at_ms: int, **more: Any) -> None:
    settled: dict[str, Any] = {"settled_below": format_instant(at_ms)} | more
    commit(state, decide_command(state, command(at_ms=at_ms, target=KAFKA, **settled),
                                 context(at_ms)))  # fmt: skip


def test_recurring_job_keeps_one_key() -> None:
    state = Partition()
    for at_ms in range(T0, T0 + 100_000, 1000):
        run_once(state, at_ms)
    assert len(state) == 1
    assert len(summary_of(state, "job").finished) == 1


def test_keys_without_a_promise_do_not_grow_the_summary() -> None:
    state = Partition()
    for at_ms in range(T0, T0 + 100):
        run_once(state, at_ms, settled_below=None)
    assert len(summary_of(state, "job").finished) == INLINE_MAX
    assert len(state) == 1 + 100 - INLINE_MAX


def test_what_is_remembered_alone_is_forgotten_after_a_week() -> None:
    state = Partition()
    manual = {"trigger": "manual", "command_id": "c", "run_id": "job@x#c"}
    run_once(state, T0, **manual)
    assert state.forgettable(T0 + REMEMBER_MS - 1, 10) == []
    assert {change.key for change in state.forgettable(T0 + REMEMBER_MS, 10)} == {"job@x#c", "job"}


def test_recurring_job_is_never_forgotten_by_age_but_a_deleted_one_is() -> None:
    state = Partition()
    run_once(state, T0)
    run_once(state, T0 + 1)
    assert state.forgettable(T0 + 9 * REMEMBER_MS, 10) == []
    commit(state, decide_job_deleted(state, JobDeleted("job"), context(T0 + 2)))
    assert state.forgettable(T0 + 2 + REMEMBER_MS, 10) == [StateChange("job", None)]


def test_what_was_not_committed_is_proposed_again() -> None:
    state = Partition()
    run_once(state, T0)
    changes = state.forgettable(T0 + REMEMBER_MS, 10)
    assert state.forgettable(T0 + REMEMBER_MS, 10) == []
    state.remember(changes)
    assert state.forgettable(T0 + REMEMBER_MS, 10) == changes


def test_summary_of_a_job_with_an_open_run_is_kept() -> None:
    state = Partition()
    run_once(state, T0)
    commit(state, decide_command(state, command(at_ms=T0 + 5), context(T0 + 5)))
    assert state.forgettable(T0 + 2 * REMEMBER_MS, 10) == []


def test_draft_is_seen_by_nobody_else() -> None:
    state = Partition()
    draft = Draft(state)
    decision = decide_command(draft, command(), context())
    draft.stage(decision.state)
    assert len(draft.open_runs("job")) == 1
    assert state.open_runs("job") == []


def test_promises_stay_few() -> None:
    promises: tuple[tuple[int, int], ...] = ()
    for offset in range(2 * PROMISES_MAX):
        promises = promise(promises, T0 - offset, offset)
    assert len(promises) == PROMISES_MAX
    assert is_settled(promises, T0 - 2 * PROMISES_MAX, 2 * PROMISES_MAX - 1)


def test_every_kind_survives_encoding() -> None:
    state = Partition()
    run_once(state, T0)
    commit(state, decide_command(state, command(at_ms=T0 + 1), context(T0)))
    decision = decide_result(state, ("job@2026-09-21T14:13:20.001Z", 1), Failed("e"),
                             context(T0, soon_ms=0))  # fmt: skip
    commit(state, decision)
    run_once(state, T0 + 2, trigger="manual", command_id="c", run_id="job@x#c")
    assert len(state) == 3
    for key, value in state:
        assert decode_state(key.encode(), encode_state(value)) == StateChange(key, value)


UNREADABLE = (b"", b"{", b"[]", b'{"version":1,"kind":"x"}', b'{"version":1}')


@pytest.mark.parametrize("value", UNREADABLE)
def test_unreadable_state_is_refused(value: bytes) -> None:
    with pytest.raises(RequestError, match="run-state is not readable"):
        decode_state(b"job", value)


def test_state_of_a_later_version_ends_the_process() -> None:
    with pytest.raises(ConfigError, match="version 2, this executor reads 1: upgrade"):
        decode_state(b"job", b'{"version":2,"kind":"job"}')


def test_failures_in_a_row_end_with_a_success() -> None:
    state = Partition()
    failures = []
    never = Failed("never", retryable=False)
    results: tuple[Result, ...] = (never, never, Succeeded())
    for nth, result in enumerate(results):
        one = command(at_ms=T0 + nth)
        commit(state, decide_command(state, one, context()))
        commit(state, decide_result(state, (one.run_id, 1), result, context()))
        failures.append(summary_of(state, "job").failures_in_a_row)
    assert failures == [1, 2, 0]
