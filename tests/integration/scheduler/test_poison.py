"""A record whose acceptance the broker refuses is found alone, refused, and holds up nobody."""

import random

from scheduler.contract.partition import partition_of
from scheduler.kafka.admin import KafkaAdmin
from tests.integration.scheduler.line import User
from tests.integration.scheduler.test_bad_input import EVERY, neighbour


def test_the_culprit_is_refused_and_its_neighbours_go_on(user: User) -> None:
    """job-status takes 1 kB; the reason for refusing this definition would be larger."""
    admin = KafkaAdmin({"bootstrap.servers": user.bootstrap})
    admin.alter(user.catalog.name("job-status"), {"max.message.bytes": "1000"})
    key = b"poison"
    partition = partition_of(key, 256)
    before, after = neighbour("before-poison", partition), neighbour("after-poison", partition)
    field = random.Random(1).randbytes(4_000).hex()  # nothing to compress
    user.produce(before, EVERY)
    user.status(before, "active")
    _, offset = user.produce(key, {"every": "PT1S", field: 1})
    user.produce(after, EVERY)
    answer = user.status(key, "rejected", deadline_s=90)
    assert f"[{partition}]@{offset}" in answer["error"]
    assert "broker refuses" in answer["error"]
    user.status(after, "active", deadline_s=90)
    fired = [run["scheduled_at"] for run in user.runs(before)]
    user.find("runs", before, lambda run: run["scheduled_at"] > fired[-1])
    user.find("runs", after, lambda run: run["kind"] == "run")
    instants = [run["scheduled_at"] for run in user.runs(before)]
    assert len(instants) == len(set(instants))
