"""Which nominal instants of a job are settled: sent or decided, never to be sent again.

Theory of operation. A scheduled command carries ``settled_below`` = S: every earlier nominal
instant of the job was sent or decided. The promise binds only commands of the same or an older
definition (offset <= D), because an edited job may legitimately have earlier instants. So one
promise is a pair (S, D), and what a job has been promised is the set of pairs none of which is
implied by another: almost always one.

    >>> promises = promise(promise((), 100, 7), 200, 9)
    >>> promises
    ((200, 9),)
    >>> is_settled(promises, 150, 7), is_settled(promises, 150, 10)
    (True, False)

A newer definition with a lower S leaves both pairs standing:

    >>> promise(promises, 50, 12)
    ((200, 9), (50, 12))

What it does not do: it says nothing about a key by itself; whether a settled key may be
reopened is the caller's rule.
"""

Promise = tuple[int, int]
"""(settled below, epoch ms; definition offset)."""

PROMISES_MAX = 8
"""More than one needs an edit while an older definition's instants are still under way; at
eight the oldest definition's promise is let go, which can only let a very old duplicate pass."""


def promise(promises: tuple[Promise, ...], below_ms: int, definition_offset: int,
            ) -> tuple[Promise, ...]:  # fmt: skip
    """``promises`` with one more; those it implies are gone. Cost: linear, at most 8."""
    if any(s >= below_ms and d >= definition_offset for s, d in promises):
        return promises
    kept = [(s, d) for s, d in promises if s > below_ms or d > definition_offset]
    kept.append((below_ms, definition_offset))
    return tuple(sorted(kept, key=lambda pair: pair[1])[-PROMISES_MAX:])


def is_settled(promises: tuple[Promise, ...], nominal_ms: int, definition_offset: int) -> bool:
    """Whether a command of that definition for that instant has been promised not to come."""
    return any(nominal_ms < s and definition_offset <= d for s, d in promises)
