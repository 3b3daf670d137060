"""The loop over in-memory twins: what happens when transactions and ownership come and go."""

from collections.abc import Iterator

import pytest

from executor.core.outcome import Failed, Succeeded
from scheduler.kafka.transaction import Aborted, Uncertain
from tests.unit.executor.building import KAFKA, T0, plain
from tests.unit.executor.runtime.twins import Bench, Cluster, run_id

RUN = run_id(0)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(inherit_ms=30_000, soon_ms=5_000)
    made.assign(0)
    yield made
    made.close()


def other(cluster: Cluster, **config: int) -> Bench:
    made = Bench(cluster, **config)
    made.assign(0)
    return made


def statuses(cluster: Cluster, wanted: str = RUN) -> list[str]:
    return [status for found, status, _ in cluster.history() if found == wanted]


def test_run_is_claimed_done_and_recorded(bench: Bench) -> None:
    bench.cluster.send(plain())
    bench.step(2)
    assert bench.started() == (RUN, 1)
    assert bench.cluster.offsets == {0: 1}
    bench.answer(RUN, 1, Succeeded())
    bench.step()
    assert statuses(bench.cluster) == ["running", "succeeded"]
    assert bench.worker.in_flight == 0


def test_a_run_whose_job_is_deleted_in_the_same_transaction_is_started_and_ends(
    bench: Bench,
) -> None:
    bench.cluster.send(plain(), {"kind": "job-deleted", "job_id": "job"})
    bench.step(2)
    assert bench.started() == (RUN, 1)
    bench.answer(RUN, 1, Failed("HTTP 503"))
    bench.step()
    assert statuses(bench.cluster) == ["running", "dead"]


@pytest.mark.parametrize("fenced", [True, False])
def test_nothing_starts_before_its_claim_is_committed(bench: Bench, fenced: bool) -> None:
    bench.committer.plan.append(Aborted("no", fenced))
    bench.cluster.send(plain())
    bench.step()
    assert bench.worker.in_flight == 0
    assert statuses(bench.cluster) == []
    bench.step()
    assert bench.started() == (RUN, 1)
    assert statuses(bench.cluster) == ["running"]


def test_without_membership_nothing_is_committed(bench: Bench) -> None:
    bench.group.is_member = False
    bench.cluster.send(plain())
    bench.step(3)
    assert (bench.worker.in_flight, bench.committer.sizes) == (0, [])
    bench.group.is_member = True
    bench.step()
    assert bench.started() == (RUN, 1)


def test_uncertain_claim_that_failed_is_made_again(bench: Bench) -> None:
    bench.committer.plan.append(Uncertain("lost"))
    bench.cluster.send(plain())
    bench.step(3)
    assert bench.started() == (RUN, 1)
    assert statuses(bench.cluster) == ["running"]


def test_uncertain_claim_that_came_through_is_attempted_after_the_lease(bench: Bench) -> None:
    bench.committer.plan.append(Uncertain("kept"))
    bench.cluster.send(plain())
    bench.step(3)
    assert bench.worker.in_flight == 0
    bench.step(2, after_ms=30_000)
    assert bench.started() == (RUN, 2)


@pytest.mark.parametrize("reason", ["kept", "lost"])
def test_uncertain_result_is_recorded_once(bench: Bench, reason: str) -> None:
    bench.cluster.send(plain())
    bench.step()
    bench.started()
    bench.committer.plan.append(Uncertain(reason))
    bench.answer(RUN, 1, Succeeded())
    bench.step(4)
    bench.step(2, after_ms=60_000)
    assert statuses(bench.cluster) == ["running", "succeeded"]
    assert bench.target.started.empty()


def test_result_that_was_aborted_is_not_lost(bench: Bench) -> None:
    bench.cluster.send(plain())
    bench.step()
    bench.started()
    bench.committer.plan.extend([Aborted("no"), Aborted("no", fenced=True)])
    bench.answer(RUN, 1, Succeeded())
    bench.step(3)
    assert statuses(bench.cluster) == ["running", "succeeded"]


def test_lost_partition_cancels_its_attempts_and_the_next_owner_goes_on(bench: Bench) -> None:
    bench.cluster.send(plain())
    bench.step()
    bench.started()
    bench.lose(0)
    bench.step()
    assert bench.target.cancelled.get(timeout=10) == (RUN, 1)
    assert bench.worker.live_partitions == frozenset()
    second = other(bench.cluster, inherit_ms=30_000)
    second.step()
    second.step(after_ms=29_000)
    assert second.worker.in_flight == 0
    second.step(after_ms=1_000)
    assert second.started() == (RUN, 2)
    second.answer(RUN, 2, Succeeded())
    second.step()
    second.close()
    assert statuses(bench.cluster) == ["running", "running", "succeeded"]


def test_partition_that_came_back_is_another_one(bench: Bench) -> None:
    bench.cluster.send(plain())
    bench.step()
    bench.started()
    bench.lose(0)
    bench.assign(0)
    bench.step(3)
    assert bench.worker.in_flight == 0
    bench.step(after_ms=30_000)
    assert bench.started() == (RUN, 2)


def test_wait_of_an_earlier_ownership_is_void(bench: Bench) -> None:
    """Another owner may have started that attempt meanwhile: it is inherited like any other."""
    bench.cluster.send(plain(retry_base_seconds=1, retry_cap_seconds=1))
    bench.step()
    bench.started()
    bench.answer(RUN, 1, Failed("no"))
    bench.step()
    bench.lose(0)
    bench.assign(0)
    bench.step(3, after_ms=2_000)
    assert bench.worker.in_flight == 0
    bench.step(after_ms=30_000)
    assert bench.started() == (RUN, 2)


def test_short_delay_is_waited_for_here_and_survives_a_crash(bench: Bench) -> None:
    bench.cluster.send(plain(retry_base_seconds=1, retry_cap_seconds=1))
    bench.step()
    bench.started()
    bench.answer(RUN, 1, Failed("no"))
    bench.step()
    assert statuses(bench.cluster) == ["running", "retrying"]
    second = other(bench.cluster, inherit_ms=10)
    second.step()
    second.step(after_ms=10)
    assert second.started() == (RUN, 2)
    second.close()
    bench.step(after_ms=1_000)
    assert bench.started() == (RUN, 2)  # a fenced owner would not get that far


def test_attempts_in_flight_are_bounded() -> None:
    bench = Bench(max_in_flight=2)
    bench.assign(0)
    bench.cluster.send(*(plain(at_ms=T0 + nth) for nth in range(5)))
    bench.step(5)
    assert bench.worker.in_flight == 2
    assert bench.cluster.offsets == {0: 2}
    first = bench.started()
    bench.answer(*first, Succeeded())
    bench.step(2)
    assert bench.worker.in_flight == 2
    assert bench.cluster.offsets == {0: 3}
    bench.close()


def test_inherited_attempts_are_bounded_and_hold_up_no_claim_before_they_are_due() -> None:
    first = Bench()
    first.assign(0)
    first.cluster.send(*(plain(at_ms=T0 + nth) for nth in range(5)))
    first.step()
    second = other(first.cluster, max_in_flight=2, inherit_ms=1_000)
    first.cluster.send(plain("late"))
    second.step(2)
    assert second.worker.in_flight == 1
    second.step(2, after_ms=1_000)
    assert second.worker.in_flight == 2
    first.close()
    second.close()


def test_draining_starts_no_attempt_that_becomes_due(bench: Bench) -> None:
    bench.cluster.send(plain(retry_base_seconds=1, retry_cap_seconds=1))
    bench.step()
    bench.started()
    bench.answer(RUN, 1, Failed("no"))
    bench.step()
    bench.worker.drain()
    bench.step(3, after_ms=1_000)
    assert bench.target.started.empty()
    assert statuses(bench.cluster) == ["running", "retrying"]


def test_draining_claims_nothing_and_records_what_ends(bench: Bench) -> None:
    bench.cluster.send(plain(at_ms=T0))
    bench.step()
    bench.started()
    bench.worker.drain()
    bench.cluster.send(plain(at_ms=T0 + 1))
    bench.step(2)
    was_busy = bench.worker.busy
    bench.answer(RUN, 1, Succeeded())
    bench.step()
    assert (was_busy, bench.worker.busy) == (True, False)
    assert bench.cluster.offsets == {0: 1}


def test_message_that_cannot_be_committed_is_found_and_refused(bench: Bench) -> None:
    bench.committer.poison = f"{run_id(3)} 1".encode()
    bench.cluster.send(*(plain(at_ms=T0 + nth, target=KAFKA) for nth in range(8)))
    bench.step(20)
    ended = {found: status for found, status, _ in bench.cluster.history()}
    assert ended == {run_id(nth): "dead" if nth == 3 else "succeeded" for nth in range(8)}
    assert bench.deliveries.doubts > 0


def test_undecodable_command_does_not_hold_up_the_partition(bench: Bench) -> None:
    bench.cluster.logs["runs", 0].append((b"x", b"\xff{"))
    bench.cluster.send({"kind": "from-the-future", "job_id": "a"}, plain(target=KAFKA))
    bench.step()
    assert statuses(bench.cluster) == ["succeeded"]
    assert bench.cluster.offsets == {0: 3}


def test_cancel_stops_the_attempt(bench: Bench) -> None:
    bench.cluster.send(plain())
    bench.step()
    bench.started()
    bench.cluster.send({"kind": "cancel", "job_id": "job", "run_id": None})
    bench.step()
    assert bench.target.cancelled.get(timeout=10) == (RUN, 1)
    assert statuses(bench.cluster) == ["running", "cancelled"]


def test_run_cancelled_within_its_own_transaction_never_starts(bench: Bench) -> None:
    bench.cluster.send(plain(), {"kind": "cancel", "job_id": "job", "run_id": RUN})
    bench.step(2)
    assert (bench.worker.in_flight, statuses(bench.cluster)) == (0, ["running", "cancelled"])


def test_foreign_record_in_run_state_does_not_hold_up_the_partition(bench: Bench) -> None:
    bench.cluster.logs["run-state", 0].append((b"who", b"knows"))
    bench.cluster.send(plain(target=KAFKA))
    bench.step(2)
    assert statuses(bench.cluster) == ["succeeded"]
