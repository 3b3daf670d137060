"""ISO 8601 durations of whole seconds, for ``every``."""

import re

SECONDS_MAX = 3_650 * 86_400
"""Ten years: more is surely a slip, and far from any overflow."""

_DURATION = re.compile(
    r"P(?:(?P<w>[0-9]{1,9})W)?(?:(?P<d>[0-9]{1,9})D)?"
    r"(?P<time>T(?:(?P<h>[0-9]{1,9})H)?(?:(?P<m>[0-9]{1,9})M)?(?:(?P<s>[0-9]{1,9})S)?)?"
)
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parse_duration(text: str) -> int:
    """Seconds of an ISO 8601 duration.

    Months and years are refused because they have no fixed length.

    Raises:
        ValueError: not a duration of 1 second to ten years in whole seconds.

    >>> parse_duration("PT1H30M")
    5400
    """
    match = _DURATION.fullmatch(text.upper())
    if match is None or text.upper().endswith(("P", "T")):
        raise ValueError(
            f"{text[:60]!r} is not an ISO 8601 duration in whole weeks, days, hours, minutes "
            "and seconds; write e.g. PT30S or P1DT12H"
        )
    seconds = sum(int(match[unit] or 0) * each for unit, each in _SECONDS.items())
    if not 1 <= seconds <= SECONDS_MAX:
        raise ValueError(f"{text[:60]!r} lies outside of PT1S to P3650D")
    return seconds


def format_duration(seconds: int) -> str:
    """Inverse of `parse_duration`, in the largest unit that divides the duration.

    >>> format_duration(5400), format_duration(86400)
    ('PT90M', 'P1D')
    """
    if seconds % 86_400 == 0:
        return f"P{seconds // 86_400}D"
    for unit, each in (("H", 3_600), ("M", 60)):
        if seconds % each == 0:
            return f"PT{seconds // each}{unit}"
    return f"PT{seconds}S"
