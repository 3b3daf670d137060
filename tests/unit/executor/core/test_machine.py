"""Each row of the transition table, and the rules around it."""

from typing import Any

import pytest

from executor.core.command import CancelCommand, JobDeleted
from executor.core.machine import (
    NOTE_DUPLICATE,
    NOTE_RUNNING,
    NOTE_STALE,
    Decision,
    decide_cancel,
    decide_command,
    decide_due,
    decide_job_deleted,
    decide_result,
)
from executor.core.outcome import Cancelled, Failed, Succeeded
from executor.core.partition import Partition, known_run, summary_of
from executor.core.state import FinishedRun, OpenRun
from executor.core.table import Event, Phase, Status
from scheduler.contract.deadletter import DeadLetter
from scheduler.contract.history import RunHistory
from scheduler.contract.run import DelayedRun
from tests.unit.executor.building import (
    KAFKA,
    T0,
    Deliveries,
    command,
    commit,
    context,
    rows,
    statuses,
)

RUN = "job@2026-09-21T14:13:20.000Z"


@pytest.fixture
def state() -> Partition:
    return Partition()


def claim(state: Partition, now_ms: int = T0, **more: Any) -> Decision:
    return commit(state, decide_command(state, command(**more), context(now_ms)))


def end(state: Partition, result: Any, attempt: int = 1, **more: Any) -> Decision:
    return commit(state, decide_result(state, (RUN, attempt), result, context(T0 + 9, **more)))


def open_run(state: Partition) -> OpenRun:
    run = state.get(RUN)
    assert isinstance(run, OpenRun)
    return run


def test_claim_writes_state_and_history_and_starts(state: Partition) -> None:
    decision = claim(state, T0 + 40)
    assert [run.run_id for run in decision.starts] == [RUN]
    assert [change.key for change in decision.state] == [RUN]
    (row,) = rows(decision, "run-history")
    assert (row["status"], row["attempt"], row["late_ms"]) == ("running", 1, 40)
    assert row["executor"] == "me"


def test_duplicate_of_an_open_run_changes_nothing(state: Partition) -> None:
    claim(state)
    assert claim(state) == Decision(note=NOTE_DUPLICATE)


def test_higher_attempt_does_not_start_beside_a_live_one(state: Partition) -> None:
    claim(state)
    assert claim(state, attempt=2) == Decision(note=NOTE_RUNNING)


def test_success_moves_the_key_into_the_summary(state: Partition) -> None:
    claim(state)
    decision = end(state, Succeeded())
    assert statuses(decision) == ["succeeded"]
    assert state.get(RUN) is None
    summary = summary_of(state, "job")
    assert [run.run_id for run in summary.finished] == [RUN]
    assert (summary.last_success_ms, summary.failures_in_a_row) == (T0 + 9, 0)
    assert claim(state).note == NOTE_DUPLICATE


def test_result_of_an_earlier_attempt_is_stale(state: Partition) -> None:
    claim(state)
    end(state, Failed("no"), soon_ms=10**9)
    commit(state, decide_due(state, RUN, 1, Event.DUE, context()))
    assert end(state, Succeeded(), attempt=1) == Decision(note=NOTE_STALE)
    assert statuses(end(state, Succeeded(), attempt=2)) == ["succeeded"]


def test_short_delay_waits_here(state: Partition) -> None:
    claim(state)
    decision = end(state, Failed("no"), soon_ms=10**9)
    (wait,) = decision.waits
    assert (wait.run_id, wait.attempt) == (RUN, 1)
    assert 0 <= wait.delay_ms <= 20_000
    assert rows(decision, "runs-retry") == []
    assert statuses(decision) == ["retrying"]
    assert open_run(state).phase is Phase.WAITING


def test_long_delay_goes_to_the_wheel(state: Partition) -> None:
    claim(state)
    decision = end(state, Failed("no", retry_after_ms=60_000))
    (delayed,) = rows(decision, "runs-retry")
    assert (delayed["attempt"], delayed["trigger"], delayed["last_error"]) == (2, "retry", "no")
    assert decision.waits == ()
    read = DelayedRun.decode(decision.records[0].value or b"")
    assert T0 + 60_009 <= read.not_before <= T0 + 80_009
    assert decision.records[0].partition < 256


def test_delayed_run_comes_back_once(state: Partition) -> None:
    claim(state)
    end(state, Failed("no"), soon_ms=0)
    again = claim(state, attempt=2, trigger="retry")
    assert [run.attempt for run in again.starts] == [2]
    assert [one.attempt for one in open_run(state).attempts] == [1, 2]
    assert claim(state, attempt=2, trigger="retry").note == NOTE_DUPLICATE


def test_attempts_used_up_end_in_the_dead_letters(state: Partition) -> None:
    claim(state, max_attempts=1)
    decision = end(state, Failed("no"))
    letter = DeadLetter.decode(decision.records[1].value or b"")
    assert (letter.attempt, letter.last_error, letter.dead_at) == (1, "no", T0 + 9)
    assert statuses(decision) == ["dead"]
    assert summary_of(state, "job").failures_in_a_row == 1


def test_failure_that_will_not_pass_is_not_tried_again(state: Partition) -> None:
    claim(state)
    assert statuses(end(state, Failed("never", retryable=False))) == ["dead"]


def test_handler_may_cancel_its_run(state: Partition) -> None:
    claim(state)
    (row,) = rows(end(state, Cancelled("not needed")), "run-history")
    assert (row["status"], row["reason"]) == ("cancelled", "not needed")


def test_inherited_run_gets_the_next_attempt(state: Partition) -> None:
    claim(state)
    decision = commit(state, decide_due(state, RUN, 1, Event.TAKEN_OVER, context()))
    assert [run.attempt for run in decision.starts] == [2]
    assert open_run(state).attempts[0].error == "executor me was lost"


def test_inherited_last_attempt_is_dead(state: Partition) -> None:
    claim(state, max_attempts=1)
    decision = commit(state, decide_due(state, RUN, 1, Event.TAKEN_OVER, context()))
    assert statuses(decision) == ["dead"]
    assert decision.starts == ()


def test_wait_for_a_run_that_moved_on_is_stale(state: Partition) -> None:
    claim(state)
    assert decide_due(state, RUN, 1, Event.DUE, context()).note == NOTE_STALE
    end(state, Succeeded())
    assert decide_due(state, RUN, 1, Event.TAKEN_OVER, context()).note == NOTE_STALE


def test_kafka_target_is_one_transaction(state: Partition) -> None:
    decision = claim(state, target=KAFKA)
    assert [record.topic for record in decision.records] == ["orders", "run-history"]
    assert statuses(decision) == ["succeeded"]
    assert decision.starts == ()
    assert claim(state, target=KAFKA).note == NOTE_DUPLICATE


def test_kafka_target_without_topic_is_tried_again(state: Partition) -> None:
    failing = context(deliveries=Deliveries(Failed("no topic")), soon_ms=0)
    decision = commit(state, decide_command(state, command(target=KAFKA), failing))
    assert statuses(decision) == ["retrying"]
    again = claim(state, target=KAFKA, attempt=2, trigger="retry")
    assert statuses(again) == ["succeeded"]
    assert state.get(RUN) is None


def test_target_none_is_only_told(state: Partition) -> None:
    decision = claim(state, target={"kind": "none"})
    assert statuses(decision) == ["dispatched"]
    assert decision.state == ()


def test_replay_reopens_with_attempts_granted(state: Partition) -> None:
    claim(state, max_attempts=1)
    end(state, Failed("no"))
    decision = claim(state, attempt=2, trigger="replay", max_attempts=2, command_id="c")
    (run,) = decision.starts
    assert (run.attempt_limit, run.replays, run.idempotency_key) == (3, 1, f"job/{RUN[4:]}")


def test_replay_of_a_success_is_another_effect(state: Partition) -> None:
    claim(state)
    end(state, Succeeded())
    (run,) = claim(state, attempt=2, trigger="replay", command_id="c").starts
    assert run.idempotency_key == f"job/{RUN[4:]}#c"
    end(state, Succeeded(), attempt=2)
    assert isinstance(state.get(RUN), FinishedRun)
    assert claim(state, attempt=2, trigger="replay", command_id="c").note == NOTE_DUPLICATE


def test_settled_instant_is_a_duplicate_though_unknown(state: Partition) -> None:
    claim(state, at_ms=T0 + 5000, settled_below="2026-09-21T14:13:25.000Z", target=KAFKA)
    assert claim(state).note == NOTE_DUPLICATE
    assert claim(state, definition_offset=2).note is None
    assert claim(state, at_ms=T0 + 1, trigger="backfill").note is None
    manual: dict[str, Any] = {"trigger": "manual", "command_id": "c", "run_id": f"{RUN}#c"}
    assert claim(state, **manual).note is None


def test_cancel_stops_one_run(state: Partition) -> None:
    claim(state)
    claim(state, at_ms=T0 + 1)
    decision = commit(state, decide_cancel(state, CancelCommand("job", RUN), context()))
    assert decision.stops == (RUN,)
    assert statuses(decision) == ["cancelled"]
    assert len(state.open_runs("job")) == 1


def test_cancel_of_a_job_stops_all_its_runs(state: Partition) -> None:
    for at_ms in (T0, T0 + 1, T0 + 2):
        claim(state, at_ms=at_ms)
    decision = commit(state, decide_cancel(state, CancelCommand("job", None), context()))
    assert statuses(decision) == ["cancelled"] * 3
    assert state.open_runs("job") == []
    assert summary_of(state, "job").runs == 3


def test_cancelled_retry_does_not_come_back(state: Partition) -> None:
    claim(state)
    end(state, Failed("no"), soon_ms=0)
    commit(state, decide_cancel(state, CancelCommand("job", None), context()))
    assert claim(state, attempt=2, trigger="retry").note == NOTE_DUPLICATE


def test_deleted_job_finishes_what_runs_and_cancels_what_waits(state: Partition) -> None:
    claim(state)
    end(state, Failed("no"), soon_ms=0)
    claim(state, at_ms=T0 + 1)
    decision = commit(state, decide_job_deleted(state, JobDeleted("job"), context()))
    assert statuses(decision) == ["cancelled"]
    (running,) = state.open_runs("job")
    failed = decide_result(state, (running.run_id, 1), Failed("no"), context())
    assert statuses(commit(state, failed)) == ["dead"]
    assert summary_of(state, "job").deleted


def test_deletion_of_an_unknown_job_writes_nothing(state: Partition) -> None:
    assert decide_job_deleted(state, JobDeleted("job"), context()) == Decision()


def test_every_row_is_of_the_contract(state: Partition) -> None:
    decisions = [
        claim(state),
        end(state, Failed("no"), soon_ms=0),
        claim(state, attempt=2),
        end(state, Succeeded(), attempt=2),
        claim(state, target={"kind": "none"}),
    ]
    for decision in decisions:
        for record in decision.records:
            if record.topic == "run-history":
                read = RunHistory.decode(record.value or b"")
                assert read.run_id.encode() == record.key


def test_known_run_is_found_wherever_it_lies(state: Partition) -> None:
    claim(state)
    assert isinstance(known_run(state, "job", RUN), OpenRun)
    end(state, Succeeded())
    known = known_run(state, "job", RUN)
    assert isinstance(known, FinishedRun)
    assert known.status is Status.SUCCEEDED
