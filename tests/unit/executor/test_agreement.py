"""Both halves read each other's records: they share topics and no code for these."""

from executor.core.command import RunCommand, Trigger, decode_command
from executor.core.machine import decide_command, decide_result
from executor.core.outcome import Failed
from executor.core.partition import Partition
from scheduler.contract.compile import compile_job
from scheduler.contract.intake import ContractDecoder
from scheduler.contract.run import RunCommand as Message
from scheduler.core.command import run_command
from scheduler.core.records import Incoming
from tests.unit.executor.building import T0, command, commit, context

DEFINITION = (
    b'{"every":"PT5S","target":{"kind":"kafka","topic":"orders","key":"k"},"payload":{"a":1},'
    b'"max_attempts":7,"timeout_seconds":9}'
)


def test_executor_reads_what_the_scheduler_sends() -> None:
    job = compile_job("job", DEFINITION, 42)
    sent = run_command(job.body, T0, T0 + 5, "schedule", T0)
    read = decode_command(sent)
    message = Message.decode(sent)
    assert isinstance(read, RunCommand)
    assert (read.run_id, read.scheduled_ms, read.run_ms) == (message.run_id, T0, T0 + 5)
    assert (read.definition_offset, read.settled_below_ms) == (42, T0)
    assert (read.max_attempts, read.timeout_ms, read.target_kind) == (7, 9000, "kafka")
    assert read.target["topic"] == "orders"
    assert read.payload == {"a": 1}


def test_delayed_run_goes_through_the_scheduler_and_comes_back() -> None:
    for first in (command(), command(trigger="manual", command_id="c", run_id="job@x#c")):
        state = Partition()
        commit(state, decide_command(state, first, context()))
        failed = Failed("no", retry_after_ms=60_000)
        decision = commit(state, decide_result(state, (first.run_id, 1), failed, context()))
        delayed = decision.records[0]
        record = Incoming(delayed.topic, delayed.partition, 0, T0, delayed.key, delayed.value)
        run = ContractDecoder(256).delayed(record)
        assert not run.ours
        again = decode_command(run.command)
        assert isinstance(again, RunCommand)
        assert (again.run_id, again.attempt, again.trigger) == (first.run_id, 2, Trigger.RETRY)
        claimed = commit(state, decide_command(state, again, context()))
        assert [one.attempt for one in claimed.starts] == [2]
