"""Jitter and phase: constants of a job."""

from collections import Counter

from scheduler.core.spread import jitter_of, phase_of


def test_jitter_is_whole_seconds_within_its_bound_and_uses_all_of_it() -> None:
    found = Counter(jitter_of(f"job-{n}", 9) for n in range(5_000))
    assert set(found) == {second * 1000 for second in range(10)}
    assert min(found.values()) > 350


def test_jitter_is_the_first_8_bytes_of_sha_256_big_endian() -> None:
    # sha256("a") = ca978112ca1bbdca...
    assert jitter_of("a", 99) == 0xCA978112CA1BBDCA % 100 * 1000


def test_phase_is_below_the_interval() -> None:
    assert {phase_of(f"job-{n}", 5) for n in range(200)} == set(range(5))
    assert phase_of("a", 3600) == 0xCA978112CA1BBDCA % 3600
