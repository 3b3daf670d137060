"""The fault plan comes from its seed alone."""

from random import Random

from tests.chaos.plan import FREEZE_S, FaultKind, plan


def test_the_same_seed_gives_the_same_faults() -> None:
    assert plan(Random(7), 150, 3, 3) == plan(Random(7), 150, 3, 3)
    assert plan(Random(7), 150, 3, 3) != plan(Random(8), 150, 3, 3)


def test_every_kind_appears_in_the_long_form() -> None:
    for seed in range(50):
        assert {fault.kind for fault in plan(Random(seed), 150, 3, 1)} == set(FaultKind)


def test_faults_end_in_time_and_hit_who_is_there() -> None:
    for seed in range(50):
        for fault in plan(Random(seed), 60, 2, 1):
            assert fault.at_s + fault.lasts_s <= 60
            assert fault.victim < (1 if fault.on_broker else 2)


def test_freezes_outlast_the_session() -> None:
    freezes = [f for f in plan(Random(3), 300, 3, 1) if f.kind is FaultKind.FREEZE]
    assert freezes
    assert all(f.lasts_s >= FREEZE_S[0] > 10 for f in freezes)
