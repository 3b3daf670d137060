"""The examples are valid, and a one-shot among them is seen."""

from duewheel import example_handlers
from duewheel.example_jobs import TOPIC, example_jobs
from executor.targets.python import load_handlers

NOW_MS = 1_800_000_000_000


def test_every_kind_of_schedule_is_shown() -> None:
    kinds = {type(each.job.cohort.schedule).__name__ for each in example_jobs(NOW_MS)}
    assert kinds == {"CronSpec", "EverySpec", "OnceSpec"}


def test_a_one_shot_is_due_in_a_few_seconds_whenever_it_is_applied() -> None:
    due = [each.job.run_at_ms for each in example_jobs(NOW_MS) if each.job.run_at_ms is not None]
    assert due == [NOW_MS + 5_000]


def test_what_the_examples_need_is_there() -> None:
    values = [each.value.decode() for each in example_jobs(NOW_MS)]
    assert any(f'"topic": "{TOPIC}"' in value for value in values)
    handlers = load_handlers([example_handlers.__name__])
    assert any(f'"handler": "{name}"' in value for value in values for name in handlers)
