"""Random histories of one partition keep every rule; a failing seed is kept for ever.

python -m tests.simulation.test_world 0 10000    plays these seeds, prints what breaks
"""

import sys
from collections import Counter

import pytest

from tests.checker.rules import check
from tests.simulation.world import World, play

STEPS = 300
KEPT = (
    0,  # a follower that had taken up a delayed run kept it when it absorbed the deletion
    4,  # a record of instants missed at a deletion spanned one that had been sent
)


@pytest.mark.parametrize("seed", [*KEPT, *range(100, 140)])
def test_a_random_history_keeps_every_rule(seed: int) -> None:
    assert [str(violation) for violation in check(play(seed, STEPS))] == []


@pytest.mark.long
def test_many_random_histories_keep_every_rule() -> None:
    broken = {seed: len(check(play(seed, STEPS))) for seed in range(1000, 4000)}
    assert {seed: count for seed, count in broken.items() if count} == {}


def test_the_histories_are_worth_playing() -> None:
    """Each kind of thing that can happen does, within a few seeds."""
    seen: Counter[str] = Counter()

    def watch(world: World) -> None:
        seen[f"owner {world.owner}"] += 1

    for seed in range(20):
        history = play(seed, STEPS, watch)
        seen.update(run.trigger for run in history.runs)
        seen.update(outcome.reason or "" for outcome in history.outcomes)
        seen.update(status.state for status in history.statuses)
        seen.update("delayed by us" for d in history.delayed if d.trigger == "schedule")
    assert not {
        "owner 0", "owner 1", "schedule", "misfire", "retry", "window", "misfire_skip",
        "superseded", "deleted", "active", "rejected", "finished", "delayed by us",
    } - set(seen)  # fmt: skip


def main(first: int, beyond: int) -> int:
    for seed in range(first, beyond):
        for violation in check(play(seed, STEPS)):
            print(f"seed {seed}: {violation}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
