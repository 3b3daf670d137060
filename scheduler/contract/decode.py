"""Records of every topic, read; errors name topic, partition, offset and field path."""

from collections.abc import Callable, Mapping

from pydantic import BaseModel
from pydantic_core import to_json

from scheduler.contract.calendar import Calendar
from scheduler.contract.command import (
    BackfillCommand,
    CancelRunsCommand,
    TriggerCommand,
    decode_command,
)
from scheduler.contract.compile import compile_job
from scheduler.contract.deadletter import DeadLetter
from scheduler.contract.history import RunHistory
from scheduler.contract.job import JobDefinition, check_job_id
from scheduler.contract.limits import LIMITS, RETRY_DELAY_SECONDS_MAX, Limits
from scheduler.contract.partition import partition_of
from scheduler.contract.report import RunReport
from scheduler.contract.run import DelayedRun, RunTrigger, decode_run_topic
from scheduler.contract.status import JobStatus
from scheduler.contract.strict_json import read_object
from scheduler.core import intake
from scheduler.core.definition import CompiledJob
from scheduler.core.records import Incoming
from scheduler.errors import CorruptRecordError, DefinitionError, RequestError

_READERS: Mapping[str, Callable[[bytes], BaseModel | None]] = {
    "jobs": JobDefinition.decode,
    "job-commands": decode_command,
    "job-status": JobStatus.decode,
    "calendars": Calendar.decode,
    "runs": decode_run_topic,
    "runs-retry": DelayedRun.decode,
    "run-reports": RunReport.decode,
    "run-history": RunHistory.decode,
    "runs-dead-letter": DeadLetter.decode,
}


def decode_record(record: Incoming, prefix: str = "") -> BaseModel | None:
    """The message in a record of any topic of the contract, those of queues included.

    Returns:
        ``None`` for a tombstone, and for a kind in ``runs`` that this version does not know.

    Raises:
        CorruptRecordError: it is not what the contract says.
    """
    base = record.topic.removeprefix(prefix).partition(".")[0]
    reader = _READERS.get(base)
    if reader is None:
        raise _corrupt(record, f"there is no message of the contract in {record.topic}")
    if record.value is None:
        return None
    try:
        return reader(record.value)
    except RequestError as error:
        raise _corrupt(record, str(error)) from None


def _corrupt(record: Incoming, reason: str) -> CorruptRecordError:
    return CorruptRecordError(record.topic, record.partition, record.offset, reason)


class ContractDecoder:
    """The `Decoder` of the core: refusals are `RequestError`, whatever the bytes."""

    def __init__(self, job_partitions: int, limits: Limits = LIMITS) -> None:
        self._job_partitions = job_partitions
        self._limits = limits

    def job_id(self, key: bytes | None) -> str:
        """The job id that a key spells. Raises `DefinitionError`."""
        if not key:
            raise DefinitionError("job_id", "the record has no key; the key is the job id")
        try:
            return check_job_id(key.decode())
        except UnicodeDecodeError:
            raise DefinitionError("job_id", f"the key {key[:60]!r} is not UTF-8") from None
        except ValueError as error:
            raise DefinitionError("job_id", str(error)) from None

    def partition(self, key: bytes) -> int:
        """Partition of ``jobs`` that a key belongs to."""
        return partition_of(key, self._job_partitions)

    def job(self, job_id: str, value: bytes, offset: int) -> CompiledJob:
        """A compiled definition. Raises `DefinitionError`."""
        return compile_job(job_id, value, offset, self._limits)

    def delayed(self, record: Incoming) -> intake.DelayedRun:
        """A record of ``runs-retry``. Raises `RequestError`."""
        job_id = self.job_id(record.key)
        plain = read_object(_value(record), self._limits)
        run = DelayedRun.decode(_value(record), self._limits)
        if run.job_id != job_id:
            raise RequestError(f"job_id: is {run.job_id!r} but the key is {job_id!r}")
        _check_delay(run, record.appended_ms)
        for waiting in ("not_before", "last_error", "attempts", "notBefore", "lastError"):
            plain.pop(waiting, None)
        return intake.DelayedRun(
            job_id=job_id.encode(),
            nominal_ms=run.scheduled_at,
            not_before_ms=run.not_before,
            definition_offset=run.definition_offset,
            ours=_ours(run),
            queue=run.queue,
            command=to_json(plain),
        )

    def command(self, record: Incoming) -> intake.Command:
        """A record of ``job-commands``. Raises `RequestError`."""
        command = decode_command(_value(record), self._limits)
        match command:
            case TriggerCommand():
                payload = to_json(command.payload) if command.overrides_payload else None
                return intake.Trigger(command.command_id, payload)
            case BackfillCommand():
                return intake.Unsupported(command.command_id, "backfill")
            case CancelRunsCommand(of_command=None):
                return intake.Cancel(command.command_id, command.run_id)
            case CancelRunsCommand():
                return intake.Unsupported(command.command_id, "cancel of a backfill")


def _value(record: Incoming) -> bytes:
    if record.value is None:
        raise RequestError("the record has no value")
    return record.value


def _check_delay(run: DelayedRun, appended_ms: int) -> None:
    if run.not_before > appended_ms + RETRY_DELAY_SECONDS_MAX * 1_000:
        raise RequestError("not_before: lies more than 7 days after the record's append time")


def _ours(run: DelayedRun) -> bool:
    """An instant waiting for its jitter at an edit: never tried nor handed back.

    Taking another's record for ours is harmless: it holds ``settled_below`` back for a while.
    """
    scheduled = run.trigger in (RunTrigger.SCHEDULE, RunTrigger.MISFIRE)
    return scheduled and run.attempt == 1 and run.deferral == 0
