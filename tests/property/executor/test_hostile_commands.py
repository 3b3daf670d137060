"""Whatever lies in ``runs``: refused with a reason, or decided, recorded and read back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from executor.core.codec import decode_state, encode_state
from executor.core.command import RunCommand, decode_command
from executor.core.machine import decide_command, decide_result
from executor.core.outcome import Failed
from executor.core.partition import Partition
from executor.targets.directory import Directory
from executor.targets.kafka import KafkaTarget
from executor.targets.order import order_of
from executor.targets.topics import TopicCounts
from scheduler.contract.partition import partition_of
from scheduler.errors import RequestError
from tests.unit.executor.building import T0, commit, context, plain

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)
FIELDS = st.dictionaries(st.sampled_from(sorted(plain())), ANYTHING, max_size=3)
TARGETS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["kafka", "http", "python", "none", "later"])},
    optional=dict.fromkeys(("topic", "key", "headers", "url", "method", "handler"), ANYTHING),
)


@given(value=st.binary(max_size=50).filter(lambda value: not value.strip().startswith(b"{")))
@example(value=b"[" * 100_000)
def test_bytes_are_refused_with_a_reason(value: bytes) -> None:
    with pytest.raises(RequestError, match=r"must be a? ?JSON"):
        decode_command(value)


@given(fields=FIELDS, target=TARGETS)
@example(fields={"payload": "\ud800"}, target={"kind": "kafka", "topic": "orders"})
@example(fields={}, target={"kind": "kafka", "topic": "orders", "headers": {"a": "\ud800"}})
@example(fields={"timeout_seconds": 10**400}, target={"kind": "http"})
@example(fields={"job_id": "ü"}, target={"kind": "http"})
def test_what_is_not_refused_can_be_carried_through(
    fields: dict[str, Any], target: dict[str, Any]
) -> None:
    try:
        command = decode_command(json.dumps(plain() | {"target": target} | fields).encode())
    except RequestError:
        return  # the contract's own refusal; anything else is an error of the test
    if isinstance(command, RunCommand):
        carry_through(command)


def directory() -> Directory:
    topics = TopicCounts({"orders": 3}.get, lambda: 0)
    kafka = KafkaTarget(topics, lambda _: False, partition_of)
    return Directory(kafka, topics, ["http", "python"])


def carry_through(command: RunCommand) -> None:
    """Claim it or make its message, let its attempt fail, read its state back."""
    state = Partition()
    ctx = replace(context(T0), delivery=directory())
    claimed = commit(state, decide_command(state, command, ctx))
    for run in claimed.starts:
        assert order_of(run).timeout_s >= 0
        for key, value in state:
            assert decode_state(key.encode(), encode_state(value)).key == key
        commit(state, decide_result(state, (run.run_id, run.attempt), Failed("x"), context(T0)))
    for key, value in state:
        assert decode_state(key.encode(), encode_state(value)).value == value
