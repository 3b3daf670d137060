"""Reading group metadata; what cannot be read is no membership."""

import pytest
from confluent_kafka import Consumer
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import FencedError
from scheduler.kafka.ownership import GroupMetadata, parse_group_metadata

ids = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


def written(metadata: GroupMetadata) -> bytes:
    """The layout, spelled once more."""
    generation = metadata.generation.to_bytes(4, "little", signed=True)
    instance = b"\1" if metadata.instance is None else b"\0" + metadata.instance.encode() + b"\0"
    group, member = metadata.group.encode(), metadata.member.encode()
    return b"CGMDv2:" + generation + group + b"\0" + member + b"\0" + instance


@given(
    st.builds(
        GroupMetadata,
        ids,
        st.integers(-1, 2**31 - 1),
        st.just("") | ids,
        st.none() | ids,
    )
)
def test_every_membership_is_read_back(metadata: GroupMetadata) -> None:
    assert parse_group_metadata(written(metadata)) == metadata


@given(st.binary(max_size=60))
def test_anything_else_is_refused_or_read_whatever_the_bytes(data: bytes) -> None:
    for candidate in (data, b"CGMDv2:" + data):
        try:
            parsed = parse_group_metadata(candidate)
        except FencedError:
            continue
        assert candidate.startswith(b"CGMDv2:")
        assert -(2**31) <= parsed.generation < 2**31


@pytest.mark.parametrize("instance", [None, "host-1"])
def test_the_client_itself_writes_this_layout(instance: str | None) -> None:
    options = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
    if instance is not None:
        options["group.instance.id"] = instance
    consumer = Consumer(options)
    data = bytes(consumer.consumer_group_metadata())
    assert parse_group_metadata(data) == GroupMetadata("g", -1, "", instance)
    consumer.close()
