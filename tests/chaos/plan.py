"""Which fault strikes whom and when: worked out from a seed before anything starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class FaultKind(StrEnum):
    """What is done to a process."""

    KILL = "kill"
    """SIGKILL; the supervisor starts it again."""
    STOP = "stop"
    """SIGTERM; the supervisor starts it again."""
    FREEZE = "freeze"
    """SIGSTOP for longer than the session, then SIGCONT: a zombie that wakes up."""
    BROKER_STOP = "broker-stop"
    BROKER_KILL = "broker-kill"


FREEZE_S = (12.0, 20.0)
"""A session lasts 10 s, so every frozen worker has lost its partitions when it wakes up."""
BROKER_DOWN_S = (1.0, 4.0)
CALM_S = (2.0, 9.0)
"""Short enough that take-overs of consecutive faults overlap now and then."""
FIRST_S = 5.0


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault, in seconds since the load began.

    Attributes:
        victim: number of the worker or broker, from 0.
        lasts_s: how long the victim is frozen or down.
    """

    at_s: float
    kind: FaultKind
    victim: int
    lasts_s: float

    @property
    def on_broker(self) -> bool:
        return self.kind in (FaultKind.BROKER_STOP, FaultKind.BROKER_KILL)


def plan(rng: Random, seconds: float, workers: int, brokers: int) -> Sequence[PlannedFault]:
    """Faults for ``seconds``; every kind appears once before any appears again."""
    faults: list[PlannedFault] = []
    deck: list[FaultKind] = []
    at_s = FIRST_S
    while True:
        if not deck:
            deck = list(FaultKind)
            rng.shuffle(deck)
        fault = _draw(rng, deck.pop(), at_s, workers, brokers)
        if fault.at_s + fault.lasts_s > seconds:
            return faults
        faults.append(fault)
        at_s = fault.at_s + fault.lasts_s + rng.uniform(*CALM_S)


def _draw(rng: Random, kind: FaultKind, at_s: float, workers: int, brokers: int) -> PlannedFault:
    match kind:
        case FaultKind.FREEZE:
            return PlannedFault(at_s, kind, rng.randrange(workers), rng.uniform(*FREEZE_S))
        case FaultKind.BROKER_STOP | FaultKind.BROKER_KILL:
            return PlannedFault(at_s, kind, rng.randrange(brokers), rng.uniform(*BROKER_DOWN_S))
        case FaultKind.KILL | FaultKind.STOP:
            return PlannedFault(at_s, kind, rng.randrange(workers), 0.0)


SHORT: Sequence[PlannedFault] = (
    PlannedFault(2.0, FaultKind.BROKER_KILL, 0, 0.5),
    PlannedFault(18.0, FaultKind.KILL, 0, 0.0),
    PlannedFault(19.0, FaultKind.FREEZE, 1, 12.5),
    PlannedFault(26.0, FaultKind.STOP, 2, 0.0),
)
"""The short form: one of each that matters most. The broker goes first, for its consequences are
the longest: it needs about 10 s to come back, and runs of executors that lost their partitions
meanwhile are attempted again 30 s later.
"""
