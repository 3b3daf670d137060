"""Partitions agree with the Java client and nest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.contract.partition import partition_of

# Java's Utils.murmur2 of each key, as its own unit test pins it (UtilsTest.testMurmur2).
JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "murmur2"), JAVA_HASHES.items())
@pytest.mark.parametrize("count", [1, 16, 64, 256, 1_000])
def test_equals_the_java_client(key: bytes, murmur2: int, count: int) -> None:
    assert partition_of(key, count) == (murmur2 & 0x7FFFFFFF) % count


@given(st.binary(max_size=300))
def test_partitions_nest(key: bytes) -> None:
    of_256 = partition_of(key, 256)
    assert partition_of(key, 64) == of_256 % 64
    assert partition_of(key, 16) == of_256 % 16
    assert 0 <= of_256 < 256
