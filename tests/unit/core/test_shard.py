"""The rules of one partition, one at a time, on the bench of partition_bench.py."""

import json

from scheduler.core.cursor import WHOLE
from scheduler.core.guard import IF_OFFSET_HEADER, Why, guard_of
from scheduler.core.layout import ONE_SHOT
from scheduler.core.spread import jitter_of
from tests.unit.core.partition_bench import Bench, at, guarded, name, text


def test_a_job_fires_at_each_instant_once() -> None:
    bench = Bench()
    bench.put("a", 0.2, every="PT5S")
    assert bench.turn(0.3) == []
    assert bench.shard.next_due_ms is not None
    first = bench.shard.next_due_ms
    sent = [run for now in range(1, 21) for run in bench.turn(now)]
    assert len(sent) == len(set(sent)) == 4
    assert at(0) < first <= at(5)


def test_what_an_aborted_transaction_decided_is_decided_again() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT5S")
    bench.turn(1)
    bench.dropped_turn(5)
    assert bench.turn(6) == ["a@5"]


def test_a_late_record_is_sent_for_what_lies_after_its_beginning() -> None:
    """Appended at 3, accepted when the cursor is at 7: 5 lies behind the hand, but is new."""
    bench = Bench()
    bench.turn(7)
    bench.put("a", 3, start_at=text(0), every="PT5S")
    assert bench.turn(8) == ["a@5"]
    assert bench.turn(10) == ["a@10"]


def test_the_budget_cuts_within_a_cohort_and_the_next_turn_goes_on() -> None:
    bench = Bench()
    for job in "abcde":
        bench.put(job, 0, start_at=text(0), every="PT10S")
    bench.turn(1)
    assert bench.turn(10, budget=2) == ["a@10", "b@10"]
    assert bench.shard.cursor.due_ms == at(10)
    assert bench.shard.cursor.resume != WHOLE
    assert name_all(bench.rebuilt(), 10) == ["c@10", "d@10", "e@10"]
    assert bench.turn(10, budget=2) == ["c@10", "d@10"]
    assert bench.turn(10, budget=2) == ["e@10"]
    assert bench.turn(21) == ["a@20", "b@20", "c@20", "d@20", "e@20"]


def test_the_hand_never_passes_what_it_is_allowed() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT5S")
    bench.turn(1)
    assert bench.turn(30, hand=6) == ["a@5"]
    assert bench.shard.cursor.due_ms == at(6)


# ---- edits -----------------------------------------------------------------------------------


def test_an_edit_divides_nominal_time() -> None:
    """The predecessor's instants up to the edit are its own, even if they are decided later."""
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT10S")
    bench.turn(1)
    bench.put("a", 22, start_at=text(0), every="PT7S")
    assert bench.turn(23) == ["a@10", "a@20"]
    assert {run["definition_offset"] for run in bench.sent} == {0}
    assert bench.turn(28) == ["a@28"]
    assert bench.told[-1]["effective_from"] == text(22)


def test_an_edit_never_fires_into_the_past() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT60S")
    bench.turn(30)
    bench.put("a", 29, start_at=text(0), every="PT1S")
    assert bench.turn(31) == ["a@31"]
    assert bench.told[-1]["effective_from"] == text(30)


def test_an_instant_waiting_for_its_jitter_stays_the_old_versions() -> None:
    bench = Bench()
    jitter = jitter_of("b", 30) / 1000
    assert jitter > 1, "choose another job id: this one has no jitter to test"
    bench.put("b", 0, start_at=text(0), every="PT60S", jitter_seconds=30)
    bench.turn(1)
    bench.put("b", 60.5, start_at=text(0), every="PT3600S")
    assert bench.turn(60.6) == []  # handed over to runs-retry
    assert bench.turn(60.7) == []  # taken up from there
    assert bench.turn(60 + jitter - 0.1) == []
    assert bench.turn(60 + jitter) == ["b@60"]
    assert bench.sent[-1]["definition_offset"] == 0


def test_a_refused_definition_leaves_the_last_good_one_in_force() -> None:
    bench = Bench()
    good = bench.put("a", 0, start_at=text(0), every="PT10S")
    bench.turn(1)
    bad = bench.put("a", 5, every="PT0S")
    assert bench.turn(11) == ["a@10"]
    assert bench.told[-1]["state"] == "rejected"
    copy = bench.logs["jobs"][-1]
    guard = guard_of(copy.headers)
    assert guard is not None
    assert (guard.acts_on, guard.source, guard.why) == (bad, good, Why.KEPT)
    assert copy.value == bench.logs["jobs"][good].value
    assert bench.turn(21) == ["a@20"]


def test_a_bad_record_without_a_predecessor_gets_a_tombstone() -> None:
    bench = Bench()
    bench.put_raw("a", 1, b"{")
    bench.turn(2)
    last = bench.logs["jobs"][-1]
    guard = guard_of(last.headers)
    assert last.value is None
    assert guard is not None
    assert guard.why is Why.REFUSED
    bench.turn(3)
    bench.put("a", 4, start_at=text(0), every="PT5S")
    assert bench.turn(5) == ["a@5"]


def test_a_guarded_record_is_void_once_a_later_users_record_exists() -> None:
    bench = Bench()
    first = bench.put("a", 0, start_at=text(0), every="PT10S")
    bench.put("a", 1, start_at=text(0), every="PT20S")
    bench.put_raw("a", 2, None, guarded(first, first, 0, Why.FINISHED))
    assert bench.turn(20) == ["a@20"]
    guard = guard_of(bench.logs["jobs"][-1].headers)
    assert guard is not None
    assert (guard.acts_on, guard.source, guard.why) == (1, 1, Why.KEPT)


def test_a_conditional_edit_of_a_dispatched_one_shot_is_refused() -> None:
    bench = Bench()
    first = bench.put("a", 0, run_at=text(5))
    assert bench.turn(6) == ["a@5"]
    condition = ((IF_OFFSET_HEADER, str(first).encode()),)
    bench.put("a", 6, condition, run_at=text(60))
    assert bench.turn(7) == []
    assert "already dispatched" in bench.told[-1]["error"]
    assert bench.turn(61) == []


# ---- deletions -------------------------------------------------------------------------------


def test_a_deletion_ends_the_job_and_is_told() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT10S")
    bench.turn(11)
    bench.delete("a", 15)
    assert bench.turn(16) == ["job-deleted a"]
    assert bench.turn(60) == []
    assert bench.told[-1]["state"] == "deleted"
    assert bench.told[-1]["effective_from"] == text(15)


def test_a_re_created_job_begins_after_its_deletion() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT1S")
    bench.turn(3)
    bench.delete("a", 3.1)
    bench.put("a", 2.5, start_at=text(0), every="PT1S")  # the broker's clock stepped back
    assert bench.turn(5) == ["job-deleted a", "a@4", "a@5"]


def test_a_deletion_drops_delayed_runs_of_earlier_definitions() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT10S")
    bench.turn(10)
    bench.retry(bench.sent[0], 11, not_before=30)
    bench.turn(12)
    bench.delete("a", 13)
    bench.turn(14)
    assert bench.turn(40) == []
    assert [(row["reason"], row["scheduled_at"]) for row in bench.missed] == [("deleted", text(10))]
    assert bench.missed[0]["attempt"] == 1


def test_a_deletion_is_forgotten_when_no_delayed_run_can_be_older() -> None:
    bench = Bench()
    bench.put("a", 0, run_at=text(3600))
    bench.turn(1)
    bench.delete("a", 2)
    bench.turn(3)
    assert b"a" in bench.facts
    days = 86_400
    for day in range(1, 10):
        bench.turn(day * days)
    assert bench.facts == {}
    assert [key for key, _ in bench.store.scan(b"j", b"k", 10)] == []


def test_a_paused_jobs_deletion_is_told_though_its_cohort_is_gone() -> None:
    bench = Bench()
    bench.put("a", 0, schedule="*/10 * * * * *", paused=True, queue="bulk")
    bench.turn(1)
    bench.turn(30)  # the cohort was due, had no member, and is dropped
    assert [key for key, _ in bench.store.scan(b"c", b"d", 10)] == []
    bench.delete("a", 31)
    assert bench.turn(32) == ["job-deleted a"]
    assert bench.last is not None
    assert [dispatch.topic for dispatch in bench.last.dispatches] == ["runs.bulk"]


# ---- one-shots ---------------------------------------------------------------------------------


def test_a_one_shot_in_the_past_is_due_at_once() -> None:
    bench = Bench()
    bench.turn(100)
    bench.put("a", 101, run_at=text(3))
    assert bench.turn(102) == ["a@3"]
    assert bench.sent[0]["trigger"] == "schedule"
    assert bench.sent[0]["run_at"] == text(101)


def test_a_finished_one_shot_is_collected_once() -> None:
    bench = Bench()
    bench.put("a", 0, run_at=text(5))
    bench.turn(6)
    bench.turn(30)
    bench.turn(60)
    tombstones = [r for r in bench.logs["jobs"] if r.value is None]
    assert len(tombstones) == 1
    assert bench.told[-1]["state"] == "finished"
    assert [key for key, _ in bench.store.scan(b"a", b"p", 10) if ONE_SHOT in key] == []
    bench.put("a", 70, run_at=text(80))
    assert bench.turn(81) == ["a@80"]


# ---- misfires ----------------------------------------------------------------------------------


def misfire(policy: str, now: float) -> tuple[list[str], list[tuple[str, str, int]]]:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT10S", misfire_policy=policy,
              misfire_grace_seconds=15, misfire_window_seconds=60)  # fmt: skip
    bench.turn(1)
    sent = bench.turn(now)
    return sent, [(row["scheduled_at"], row["through"], row["count"]) for row in bench.missed]


def test_run_once_runs_the_latest_beyond_the_grace_and_all_within_it() -> None:
    sent, missed = misfire("run_once", 52)
    assert sent == ["a@30", "a@40", "a@50"]
    assert missed == [(text(10), text(20), 2)]


def test_skip_runs_only_what_is_within_the_grace() -> None:
    sent, missed = misfire("skip", 52)
    assert sent == ["a@40", "a@50"]
    assert missed == [(text(10), text(30), 3)]


def test_run_all_runs_everything_within_the_window() -> None:
    sent, missed = misfire("run_all", 85)
    assert sent == ["a@30", "a@40", "a@50", "a@60", "a@70", "a@80"]
    assert missed == [(text(10), text(20), 2)]


def test_run_once_looks_only_at_instants_before_the_jobs_end() -> None:
    """Members of one cohort may end at different instants; each has its own latest."""
    bench = Bench()
    for job, end in (("a", 25), ("b", 9_999)):
        bench.put(job, 0, start_at=text(0), end_at=text(end), every="PT10S",
                  misfire_grace_seconds=5)  # fmt: skip
    bench.turn(1)
    assert bench.turn(52) == ["a@20", "b@40", "b@50"]


def test_reading_goes_first_when_the_cursor_is_far_behind() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT100S")
    bench.turn(1)
    decision = bench.shard.decide(at(400), at(400), 1_000, drained=False)
    assert decision.cursor.due_ms == at(1)
    assert decision.dispatches == []


# ---- delayed runs and commands -------------------------------------------------------------------


def test_a_delayed_run_is_dispatched_when_due_and_once() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT3600S")
    bench.turn(3600)
    bench.retry(bench.sent[0], 3601, not_before=3610)
    assert bench.turn(3602) == []
    assert bench.last is not None
    assert bench.last.cursor.oldest_retry == 0
    assert name_all(bench.rebuilt(), 3610) == ["a@3600#2"]
    assert bench.turn(3610) == ["a@3600#2"]
    assert bench.turn(3700) == []
    assert bench.shard.cursor.oldest_retry == 1
    assert "not_before" not in bench.sent[-1]


def test_a_delayed_run_that_cannot_be_read_is_refused_and_the_log_goes_on() -> None:
    bench = Bench()
    bench.append("runs-retry", "a", b"nonsense", 1)
    bench.turn(2)
    assert bench.told[-1]["state"] == "rejected"
    assert "runs-retry[0]@0" in bench.told[-1]["error"]
    assert bench.shard.cursor.retries == 1


def test_settled_below_stops_at_an_instant_still_waiting() -> None:
    bench = Bench()
    bench.put("b", 0, start_at=text(0), every="PT60S", jitter_seconds=30)
    bench.turn(1)
    bench.put("b", 60.2, start_at=text(0), every="PT1S")
    bench.turn(60.3)  # instant 60 waits for its jitter, handed over to runs-retry
    bench.turn(61)
    assert name(bench.sent[-1]) == "b@61"
    assert bench.sent[-1]["settled_below"] == text(60)


def test_a_command_is_done_once() -> None:
    bench = Bench()
    bench.put("a", 0, run_at=text(9_999))
    bench.turn(1)
    for when in (2, 3):
        bench.command("a", when, command="trigger", command_id="c", payload=[1])
        bench.turn(when)
    assert [(run["trigger"], run["payload"]) for run in bench.sent] == [("manual", [1])]
    bench.command("a", 4, command="cancel", command_id="d")
    assert bench.turn(4) == ["cancel a"]


def test_a_backfill_says_that_it_is_not_supported_yet() -> None:
    bench = Bench()
    bench.put("a", 0, run_at=text(9_999))
    bench.command("a", 1, command="backfill", command_id="c", instants=[text(0)])
    bench.turn(2)
    assert bench.told[-1]["command_id"] == "c"
    assert "not supported" in bench.told[-1]["error"]


def test_every_record_the_shard_writes_is_json_of_a_known_topic() -> None:
    bench = Bench()
    bench.put("a", 0, start_at=text(0), every="PT1S")
    bench.turn(3)
    assert bench.last is not None
    backup = bench.shard.backup(bench.last)
    assert json.loads(backup.value or b"")["position"] == 1
    assert backup.observe


def name_all(shard: object, now: float) -> list[str]:
    """What a taker's shard would dispatch."""
    decision = shard.decide(at(now), at(now), 1_000, drained=True)  # type: ignore[attr-defined]
    values = [json.loads(v) for d in decision.dispatches for _, v in d.messages]
    return [name(value) for value in values]


def test_a_new_cohort_is_not_walked_through_a_past_without_members() -> None:
    """The first worker of a cluster begins a day back; that must not cost a day's instants."""
    bench = Bench()
    bench.put("a", 86_000, start_at=text(0), every="PT1S")
    assert bench.turn(86_000.5) == []
    assert bench.last is not None
    assert bench.last.cost <= 1
    bench.put("b", 86_001.2, start_at=text(0), end_at=text(86_002), every="PT1S")
    assert bench.turn(86_002) == ["a@86001", "a@86002", "b@86002"]


def test_a_member_that_begins_earlier_brings_its_cohort_forward() -> None:
    bench = Bench()
    bench.put("later", 0, start_at=text(100), schedule="*/10 * * * * *")
    bench.turn(1)
    bench.put("a", 2, schedule="*/10 * * * * *")
    bench.turn(3)
    assert bench.turn(10) == ["a@10"]
    sent = [run for now in range(20, 130, 10) for run in bench.turn(now)]
    assert sent[:9] == [f"a@{now}" for now in range(20, 110, 10)]
    assert sent[9] == "later@100"
    assert name_all(bench.rebuilt(), 130) == name_all(bench.shard, 130)


def test_a_job_that_will_never_run_says_so() -> None:
    """02:30 on the second Sunday of March never exists in New York, and the gap is skipped."""
    bench = Bench()
    bench.put("a", 0, schedule="30 2 * 3 0#2", time_zone="America/New_York", dst_gap="skip")
    bench.turn(1)
    assert bench.told[-1]["next_run_at"] is None
    assert any("never run" in warning for warning in bench.told[-1]["warnings"])


def test_the_tombstone_behind_a_bad_key_ends_there() -> None:
    for key in ("a b", "a@b", "x" * 201, ""):
        bench = Bench()
        bench.put(key, 1, every="PT1H")
        for now in range(2, 8):
            bench.turn(now)
        assert [row["state"] for row in bench.told] == ["rejected"]
        assert len(bench.logs["jobs"]) == 2
        assert [name for name, _ in bench.store.scan(b"j", b"k", 10)] == []
        assert bench.rebuilt().next_due_ms is None


def test_a_forged_guard_is_refused_whatever_is_in_it() -> None:
    rest = b',"source":0,"appended_at":0,"why":"kept"}'
    numbers = [b'{"acts_on":' + number + rest for number in (b"1e999", b"%d" % 2**70, b"true")]
    for header in (*numbers, b"[" * 100_000, b"\xff", b""):
        bench = Bench()
        bench.put("a", 1, (("duewheel-guard", header),), every="PT1H")
        bench.turn(2)
        bench.turn(3)
        assert [row["path"] for row in bench.told] == ["headers"]


def test_a_queue_that_is_not_declared_is_refused() -> None:
    bench = Bench()
    bench.put("a", 1, every="PT1S", queue="nope")
    bench.turn(2)
    assert bench.turn(10) == []
    assert bench.told[0]["path"] == "queue"
    bench.put("b", 11, run_at=text(12))
    bench.turn(12)
    bench.retry({**bench.sent[0], "queue": "nope"}, 13, not_before=14)
    assert bench.turn(20) == []
    assert "nope" in bench.told[-1]["error"]
