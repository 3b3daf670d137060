"""Read a history from the topics, as any user could: read_committed, from the beginning."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from scheduler.contract.compile import compile_job
from scheduler.core.definition import CompiledJob
from scheduler.core.guard import GUARD_HEADER
from scheduler.core.instant import parse_instant
from scheduler.core.records import Incoming
from scheduler.errors import RequestError
from tests.checker.history import (
    DeadLetter,
    Definition,
    Delayed,
    Fault,
    History,
    JobDeleted,
    Outcome,
    Run,
    Status,
)

TOPICS = ("jobs", "job-status", "runs", "run-history", "runs-retry", "runs-dead-letter")
_BATCH = 5000


class TopicsUnreadable(Exception):
    """The ends of the topics were not reached in time."""


def read_topics(
    bootstrap: str, prefix: str, monotonic_s: Callable[[], float], deadline_s: float = 60.0
) -> dict[str, list[Incoming]]:
    """Every committed record of `TOPICS`, by name without prefix, in the order of the logs.

    Raises:
        TopicsUnreadable: an end was not reached within ``deadline_s``, e.g. because an open
            transaction hides it.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{prefix}checker",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        waiting = _assign_all(consumer, prefix)
        records: dict[str, list[Incoming]] = {name: [] for name in TOPICS}
        until_s = monotonic_s() + deadline_s
        while waiting:
            for message in consumer.consume(_BATCH, timeout=0.2):
                error = message.error()
                if error is None:
                    record = _incoming(message)
                    records[record.topic.removeprefix(prefix)].append(record)
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard((message.topic(), message.partition()))
            if waiting and monotonic_s() > until_s:
                raise TopicsUnreadable(f"no end of {sorted(waiting)[:5]} (of {len(waiting)})")
    finally:
        consumer.close()
    return records


def history_of(
    records: dict[str, list[Incoming]],
    settled_ms: int,
    faults: Sequence[Fault] = (),
    *,
    executors: bool = False,
) -> History:
    """The records as data. Pure."""
    definitions = tuple(_definitions(records["jobs"]))
    kinds = {(d.job_id, d.offset): d.target_kind for d in definitions}
    commands = [(r, _json(r)) for r in records["runs"]]
    return History(
        settled_ms=settled_ms,
        definitions=definitions,
        statuses=tuple(_status(r, _json(r)) for r in records["job-status"]),
        runs=tuple(_run(r, v, kinds) for r, v in commands if v["kind"] == "run"),
        deleted=tuple(
            JobDeleted(v["job_id"], r.partition, r.offset)
            for r, v in commands
            if v["kind"] == "job-deleted"
        ),
        outcomes=tuple(_outcome(r, _json(r)) for r in records["run-history"]),
        delayed=tuple(_delayed(r, _json(r)) for r in records["runs-retry"]),
        dead_letters=tuple(_dead_letter(r, _json(r)) for r in records["runs-dead-letter"]),
        faults=tuple(faults),
        executors=executors,
    )


def _assign_all(consumer: Consumer, prefix: str) -> set[tuple[str, int]]:
    known = consumer.list_topics(timeout=10).topics
    wanted = {
        (topic, partition)
        for topic in (prefix + name for name in TOPICS)
        for partition in known[topic].partitions
    }
    consumer.assign([TopicPartition(topic, p, 0) for topic, p in sorted(wanted)])
    return wanted


def _incoming(message: Message) -> Incoming:
    headers: Any = message.headers() or ()
    return Incoming(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        appended_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple((name, value or b"") for name, value in headers),
    )


def _definitions(records: Sequence[Incoming]) -> Iterator[Definition]:
    """Users' records alone: the scheduler's own writes repeat what is known."""
    for record in records:
        if any(name == GUARD_HEADER for name, _ in record.headers):
            continue
        job_id = _text(record.key)
        if record.value is None:
            yield Definition(job_id, record.offset, record.appended_ms, None, deletes=True)
            continue
        yield Definition(
            job_id,
            record.offset,
            record.appended_ms,
            _compile(job_id, record),
            target_kind=_target_kind(record.value),
        )


def _compile(job_id: str, record: Incoming) -> CompiledJob | None:
    try:
        return compile_job(job_id, record.value or b"", record.offset)
    except RequestError:
        return None


def _target_kind(value: bytes) -> str:
    try:
        return str(json.loads(value)["target"]["kind"]).lower()
    except (ValueError, KeyError, TypeError):
        return "none"


def _status(record: Incoming, value: Any) -> Status:
    return Status(
        job_id=value["job_id"],
        offset=record.offset,
        written_ms=record.appended_ms,
        state=value["state"],
        definition_offset=value["definition_offset"],
        effective_from_ms=_instant(value["effective_from"]),
        command_id=value.get("command_id"),
    )


def _run(record: Incoming, value: Any, kinds: dict[tuple[str, int], str]) -> Run:
    definition = (value["job_id"], value["definition_offset"])
    return Run(
        job_id=value["job_id"],
        scheduled_ms=parse_instant(value["scheduled_at"]),
        run_at_ms=parse_instant(value["run_at"]),
        attempt=value["attempt"],
        deferral=value["deferral"],
        trigger=value["trigger"],
        command_id=value.get("command_id"),
        definition_offset=value["definition_offset"],
        settled_below_ms=_instant(value.get("settled_below")),
        target_kind=kinds.get(definition, "unknown"),
        partition=record.partition,
        offset=record.offset,
        sent_ms=record.appended_ms,
    )


def _outcome(record: Incoming, value: Any) -> Outcome:
    return Outcome(
        job_id=value["job_id"],
        scheduled_ms=parse_instant(value["scheduled_at"]),
        through_ms=parse_instant(value.get("through") or value["scheduled_at"]),
        count=value.get("count") or 1,
        command_id=value.get("command_id"),
        definition_offset=value["definition_offset"],
        status=value["status"],
        attempt=value["attempt"],
        reason=value.get("reason"),
        partition=record.partition,
        offset=record.offset,
    )


def _delayed(record: Incoming, value: Any) -> Delayed:
    return Delayed(
        job_id=value["job_id"],
        scheduled_ms=parse_instant(value["scheduled_at"]),
        command_id=value.get("command_id"),
        attempt=value["attempt"],
        deferral=value["deferral"],
        definition_offset=value["definition_offset"],
        not_before_ms=parse_instant(value["not_before"]),
        trigger=value["trigger"],
        offset=record.offset,
        appended_ms=record.appended_ms,
    )


def _dead_letter(record: Incoming, value: Any) -> DeadLetter:
    return DeadLetter(
        job_id=value["job_id"],
        scheduled_ms=parse_instant(value["scheduled_at"]),
        command_id=value.get("command_id"),
        attempt=value["attempt"],
        definition_offset=value["definition_offset"],
        offset=record.offset,
    )


def _json(record: Incoming) -> Any:
    return json.loads(record.value or b"null")


def _instant(text: str | None) -> int | None:
    return None if text is None else parse_instant(text)


def _text(key: bytes | None) -> str:
    return (key or b"").decode("utf-8", "backslashreplace")
