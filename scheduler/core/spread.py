"""Where a job's own constants come from: a hash of its id, the same every time.

Source: the first 8 bytes of SHA-256(job_id), big-endian. Not murmur2: that chooses the
partition, so the jobs of one partition would share their offsets.
"""

import hashlib


def jitter_of(job_id: str, jitter_seconds: int) -> int:
    """Effective instant minus nominal instant: whole seconds in 0..jitter_seconds, in ms.

    One fixed offset for all instants of a job, so that it never reorders or merges them.

    >>> jitter_of("nightly-report", 0)
    0
    >>> 0 <= jitter_of("nightly-report", 300) <= 300_000
    True
    """
    return _digest(job_id) % (jitter_seconds + 1) * 1000


def phase_of(job_id: str, every_seconds: int) -> int:
    """Phase of an interval without ``start_at``: whole seconds in 0..every_seconds - 1.

    Whole seconds, so that jobs of one interval share a few cohorts.

    >>> phase_of("nightly-report", 1)
    0
    """
    return _digest(job_id) % every_seconds


def _digest(job_id: str) -> int:
    return int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:8], "big")
