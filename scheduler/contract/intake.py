"""What the scheduler takes in, decoded for its core: the `Decoder` of core/ports.py."""

from collections.abc import Iterable

from pydantic_core import to_json

from scheduler.contract.command import (
    BackfillCommand,
    CancelRunsCommand,
    TriggerCommand,
    decode_command,
)
from scheduler.contract.compile import compile_job
from scheduler.contract.fields import check_job_id
from scheduler.contract.limits import LIMITS
from scheduler.contract.partition import partition_of
from scheduler.contract.run import DelayedRun as DelayedMessage
from scheduler.contract.run import RunTrigger
from scheduler.contract.topics import DEFAULT_QUEUE
from scheduler.core.backoff import DELAY_MS_MAX
from scheduler.core.definition import CompiledJob
from scheduler.core.intake import Cancel, Command, DelayedRun, Trigger, Unsupported
from scheduler.core.records import Incoming
from scheduler.errors import DefinitionError, RequestError


class ContractDecoder:
    """Decodes with the contract's models; refuses with `RequestError`, whatever the bytes."""

    def __init__(self, job_partitions: int, queues: Iterable[str] = (DEFAULT_QUEUE,)) -> None:
        self._job_partitions = job_partitions
        self._queues = frozenset(queues)

    def job_id(self, key: bytes | None) -> str:
        """The job id a key spells. Raises `DefinitionError`."""
        try:
            return check_job_id((key or b"").decode("ascii"))
        except (UnicodeDecodeError, ValueError) as error:
            raise DefinitionError("job_id", f"the key is not a job id: {error}") from None

    def partition(self, key: bytes) -> int:
        """Partition of ``jobs`` that a key belongs to."""
        return partition_of(key, self._job_partitions)

    def job(self, job_id: str, value: bytes, offset: int) -> CompiledJob:
        """A compiled definition. Raises `DefinitionError`."""
        job = compile_job(job_id, value, offset)
        if job.cohort.queue not in self._queues:
            raise DefinitionError("queue", self._undeclared(job.cohort.queue))
        return job

    def delayed(self, record: Incoming) -> DelayedRun:
        """A record of ``runs-retry``. Raises `RequestError`."""
        job_id = self.job_id(record.key)
        message = DelayedMessage.decode(record.value or b"")
        if message.job_id != job_id:
            raise RequestError(f"job_id is {message.job_id!r} but the key is {job_id!r}")
        if self.partition(job_id.encode()) != record.partition:
            raise RequestError(f"the run of {job_id!r} lies in the wrong partition")
        if message.queue not in self._queues:
            raise RequestError(f"queue: {self._undeclared(message.queue)}")
        plain = message.model_dump(exclude={"not_before", "last_error", "attempts"})
        first = message.attempt == 1 and message.deferral == 0
        scheduled = message.trigger in (RunTrigger.SCHEDULE, RunTrigger.MISFIRE)
        return DelayedRun(
            job_id=job_id.encode(),
            nominal_ms=message.scheduled_at,
            not_before_ms=min(message.not_before, record.appended_ms + DELAY_MS_MAX),
            definition_offset=message.definition_offset,
            ours=first and scheduled,
            queue=message.queue,
            command=_bounded(to_json(plain), LIMITS.record_bytes_max),
        )

    def _undeclared(self, queue: str) -> str:
        """One run for a topic that does not exist would end the transaction of all others."""
        declared = ", ".join(sorted(self._queues))
        return f"{queue[:80]!r} is not declared in topics.yaml (there are: {declared})"

    def command(self, record: Incoming) -> Command:
        """A record of ``job-commands``. Raises `RequestError`."""
        message = decode_command(record.value or b"")
        match message:
            case TriggerCommand():
                if not message.overrides_payload:
                    return Trigger(message.command_id, None)
                payload = _bounded(to_json(message.payload), LIMITS.definition_bytes_max)
                return Trigger(message.command_id, payload)
            case CancelRunsCommand():
                if message.of_command is not None:
                    return Unsupported(message.command_id, "cancel of a backfill")
                return Cancel(message.command_id, message.run_id)
            case BackfillCommand():
                return Unsupported(message.command_id, "backfill")


def _bounded(encoded: bytes, bytes_max: int) -> bytes:
    """Written out, a number may be longer than it was: ``1e15`` becomes 1000000000000000.0."""
    if len(encoded) > bytes_max:
        raise RequestError(f"payload: takes {len(encoded)} bytes, above the limit of {bytes_max}")
    return encoded
