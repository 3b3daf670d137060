"""Records of every topic, read; errors name topic, partition, offset and field path."""

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from scheduler.contract.calendar import Calendar
from scheduler.contract.command import decode_command
from scheduler.contract.deadletter import DeadLetter
from scheduler.contract.history import RunHistory
from scheduler.contract.job import JobDefinition
from scheduler.contract.report import RunReport
from scheduler.contract.run import DelayedRun, decode_run_topic
from scheduler.contract.status import JobStatus
from scheduler.core.records import Incoming
from scheduler.errors import CorruptRecordError, RequestError

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
