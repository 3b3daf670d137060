"""Random histories against an oracle that never forgets a key.

The oracle keeps the highest (attempt, deferral) of every run key for ever; the partition keeps
promises, summaries and a week of keys. Both must agree on every command a scheduler can send,
however often it is sent again, whatever crashes, whoever takes over.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.core.codec import decode_state, encode_state
from executor.core.command import RunCommand, decode_command
from executor.core.machine import (
    NOTE_DUPLICATE,
    NOTE_RUNNING,
    Context,
    Decision,
    decide_command,
    decide_due,
    decide_result,
)
from executor.core.outcome import Failed, Succeeded
from executor.core.partition import Draft, Partition
from executor.core.state import OpenRun
from executor.core.table import Event, Phase
from scheduler.core.instant import format_instant
from scheduler.core.records import Outgoing
from tests.unit.executor.building import ROUTES, T0, Deliveries, plain

SECOND_MS = 1000
DAY_MS = 86_400_000
STEPS = 120

Key = str


@dataclass(slots=True)
class Job:
    """What a scheduler knows of a job it sends runs of.

    Attributes:
        recurring: else every definition is a one-shot, perhaps of an instant that was before.
        waiting: nominal instants handed to the wheel again (a failed run's next attempt).
    """

    name: str
    recurring: bool
    definition: int = 1
    next_ms: int = T0
    waiting: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def edit(self, rng: Random) -> None:
        self.definition += rng.randint(1, 3)

    def fire(self, rng: Random, now_ms: int) -> dict[str, Any]:
        """The next run; a one-shot may be produced again with an instant it had within the
        last days (keys are remembered for seven).
        """
        if self.recurring:
            self.next_ms += rng.randint(1, 3) * SECOND_MS
            at_ms = self.next_ms
        else:
            self.edit(rng)
            at_ms = now_ms // (3 * DAY_MS) * (3 * DAY_MS) + rng.randint(0, 3) * SECOND_MS
        return plain(self.name, at_ms, definition_offset=self.definition,
                     settled_below=self._promise(rng, at_ms),
                     target={"kind": rng.choice(["http", "kafka"]), "topic": "orders", "url": "u"},
                     max_attempts=rng.randint(1, 4))  # fmt: skip

    def _promise(self, rng: Random, at_ms: int) -> str | None:
        """Nothing below the first instant that still waits; sometimes nothing at all."""
        instants = [at_ms, *(int(one["at_ms"]) for one in self.waiting.values())]
        return None if rng.random() < 0.2 else format_instant(min(instants))


@dataclass(slots=True)
class World:
    """Committed logs, the oracle, and the owner's memory."""

    rng: Random
    log: dict[str, bytes] = field(default_factory=dict)
    state: Partition = field(default_factory=Partition)
    now_ms: int = T0
    known: dict[Key, tuple[int, int]] = field(default_factory=dict)
    known_ms: dict[Key, int] = field(default_factory=dict)
    started: set[tuple[Key, int]] = field(default_factory=set)
    sent: list[tuple[int, bytes]] = field(default_factory=list)
    effects: list[tuple[Key, int]] = field(default_factory=list)

    def context(self) -> Context:
        seed = self.rng.randrange(1 << 30)
        return Context(self.now_ms, "me", ROUTES, Random(seed), Deliveries(), soon_ms=5_000)

    def commit(self, draft: Draft, decision: Decision) -> None:
        """A transaction: the log first, then memory, then what is started."""
        draft.stage(decision.state)
        for change in draft.changes():
            if change.value is None:
                self.log.pop(change.key, None)
            else:
                self.log[change.key] = encode_state(change.value)
            self.state.apply(change)
        for record in decision.records:
            if record.topic == "orders":
                key, attempt = (record.value or b"").decode().rsplit(" ", 1)
                self.note_start(key, int(attempt))
                self.effects.append((key, int(attempt)))
        for run in decision.starts:
            self.note_start(run.run_id, run.attempt)
        self.forget()

    def note_start(self, key: Key, attempt: int) -> None:
        assert (key, attempt) not in self.started, f"attempt {attempt} of {key} started twice"
        self.started.add((key, attempt))

    def forget(self) -> None:
        for change in self.state.forgettable(self.now_ms, 3):
            self.log.pop(change.key, None)
            self.state.apply(change)

    def take_over(self) -> None:
        """Another process reads the log. It must know exactly what the last one knew."""
        taken = Partition()
        for key, value in self.log.items():
            taken.apply(decode_state(key.encode(), value))
        assert list(taken) == list(self.state)
        for run in self.state.every_open_run():
            assert taken.open_runs(run.command.job_id) == self.state.open_runs(run.command.job_id)
        self.state = taken

    def open_runs(self, *phases: Phase) -> list[OpenRun]:
        return [run for run in self.state.every_open_run() if run.phase in phases]

    def receive(self, value: bytes) -> Decision:
        """Decide and commit one command; compare with the oracle."""
        command = decode_command(value)
        assert isinstance(command, RunCommand)
        expected = self.expected(command.run_id, (command.attempt, command.deferral))
        draft = Draft(self.state)
        decision = decide_command(draft, command, self.context())
        assert decision.note == expected, f"{command.run_id} attempt {command.attempt}"
        self.commit(draft, decision)
        if expected is None:
            self.known[command.run_id] = (command.attempt, command.deferral)
            self.known_ms[command.run_id] = self.now_ms
        self.learn(command.run_id)
        return decision

    def expected(self, key: Key, number: tuple[int, int]) -> str | None:
        known = self.known.get(key)
        if known is not None and number <= known:
            return NOTE_DUPLICATE
        if any(run.run_id == key for run in self.open_runs(Phase.RUNNING, Phase.WAITING)):
            return NOTE_RUNNING
        return None

    def learn(self, key: Key) -> None:
        """Attempts started without a command count, too."""
        run = self.state.get(key)
        if isinstance(run, OpenRun):
            self.known[key] = max(self.known[key], (run.attempt, run.deferral))


def play(seed: int, steps: int) -> World:
    rng = Random(seed)
    world = World(rng)
    jobs = [Job("tick", recurring=True), Job("once", recurring=False)]
    for _ in range(steps):
        world.now_ms += rng.choice([1, SECOND_MS, 10 * SECOND_MS, DAY_MS // 4])
        step(world, rng, rng.choice(jobs))
    return world


def step(world: World, rng: Random, job: Job) -> None:
    match rng.randint(0, 9):
        case 0 | 1 | 2:
            send(world, job.fire(rng, world.now_ms))
        case 3:
            job.edit(rng)
        case 4 | 5:
            send_again(world, rng)
        case 6 | 7:
            end_attempt(world, rng, {"tick": job} | {job.name: job})
        case 8:
            crash(world, rng)
        case 9:
            retry_or_replay(world, rng, job)


def send(world: World, value: dict[str, Any]) -> None:
    text = json.dumps({name: one for name, one in value.items() if name != "at_ms"}).encode()
    world.sent.append((world.now_ms, text))
    world.receive(text)


def send_again(world: World, rng: Random) -> None:
    """A duplicate of a run taken up within the seven days for which keys are remembered."""
    taken_up = {key for key, at_ms in world.known_ms.items() if at_ms > world.now_ms - 7 * DAY_MS}
    recent = [value for _, value in world.sent if json.loads(value)["run_id"] in taken_up]
    if recent:
        world.receive(rng.choice(recent))


def end_attempt(world: World, rng: Random, jobs: dict[str, Job]) -> None:
    running = world.open_runs(Phase.RUNNING)
    if not running:
        return
    run = rng.choice(running)
    result = Succeeded() if rng.random() < 0.5 else Failed("no", retryable=rng.random() < 0.8)
    draft = Draft(world.state)
    decision = decide_result(draft, (run.run_id, run.attempt), result, world.context())
    if rng.random() < 0.2:
        world.take_over()  # the transaction did not come through
        return
    world.commit(draft, decision)
    for delayed in delayed_runs(decision.records):
        job = jobs.get(delayed["job_id"])
        if job is not None:
            job.waiting[run.run_id] = delayed | {"at_ms": run.command.scheduled_ms}


def delayed_runs(records: tuple[Outgoing, ...]) -> Iterator[dict[str, Any]]:
    for record in records:
        if record.topic == "runs-retry":
            yield json.loads(record.value or b"")


def crash(world: World, rng: Random) -> None:
    """The owner is gone; the next one re-attempts what it inherits, or some of it."""
    world.take_over()
    for run in world.open_runs(Phase.RUNNING, Phase.WAITING):
        if rng.random() < 0.7:
            draft = Draft(world.state)
            decision = decide_due(draft, run.run_id, run.attempt, Event.TAKEN_OVER, world.context())
            world.commit(draft, decision)
            world.learn(run.run_id)


def retry_or_replay(world: World, rng: Random, job: Job) -> None:
    if job.waiting and rng.random() < 0.7:
        key = rng.choice(sorted(job.waiting))
        send(world, job.waiting.pop(key))
        return
    finished = [value for at_ms, value in world.sent if at_ms > world.now_ms - DAY_MS]
    if finished:
        plain_command = json.loads(rng.choice(finished))
        attempt = world.known[plain_command["run_id"]][0] + 1
        open_now = {run.run_id for run in world.state.every_open_run()}
        if plain_command["run_id"] not in open_now:
            send(world, plain_command | {"trigger": "replay", "attempt": attempt,
                                         "command_id": f"r{attempt}"})  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, STEPS))
def test_partition_agrees_with_an_oracle_that_never_forgets(seed: int, steps: int) -> None:
    world = play(seed, steps)
    world.take_over()


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_partition_agrees_with_the_oracle_for_long(seed: int) -> None:
    play(seed, 5 * STEPS).take_over()


def test_random_histories_reach_what_they_are_for() -> None:
    """Else the property above could hold because nothing happens."""
    worlds = [play(seed, STEPS) for seed in range(30)]
    assert sum(len(world.effects) for world in worlds) > 100
    assert any(attempt > 3 for world in worlds for _, attempt in world.started)
    assert any(world.open_runs(Phase.RETRYING) for world in worlds)
    assert any(world.open_runs(Phase.WAITING) for world in worlds)
