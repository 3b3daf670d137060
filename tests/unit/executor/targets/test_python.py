"""Handlers: which can be called, and what their answers mean."""

import asyncio
import threading
from collections.abc import Mapping

import pytest

from executor.core.outcome import Cancelled, Failed, Result, Succeeded
from executor.handlers import Cancel, Fail, Retry, RunContext
from executor.targets.order import Order
from executor.targets.python import Handler, PythonTarget, load_handlers
from scheduler.errors import ConfigError


def attempt(handlers: Mapping[str, Handler], name: str) -> Result:
    async def once() -> Result:
        target = PythonTarget(handlers)
        try:
            return await target.attempt(
                Order("job", "job@x", "x", 3, "job/x", 5.0, {"handler": name}, {"a": 1})
            )
        finally:
            await target.close()

    return asyncio.run(once())


async def broken(ctx: RunContext) -> None:
    raise KeyError(ctx.job_id)


@pytest.mark.parametrize(("answer", "result"), [
    (None, Succeeded()),
    (42, Succeeded()),
    (Fail("bad"), Failed("bad", retryable=False)),
    (Retry(1.5, "later"), Failed("later", retry_after_ms=1500)),
    (Cancel("off"), Cancelled("off")),
])  # fmt: skip
def test_answers(answer: object, result: Result) -> None:
    assert attempt({"h": lambda _: answer}, "h") == result


def test_exception_is_a_failure_that_may_pass() -> None:
    assert attempt({"h": broken}, "h") == Failed("KeyError: 'job'")


def test_plain_function_runs_in_a_thread() -> None:
    seen: list[tuple[str, RunContext]] = []
    attempt({"h": lambda ctx: seen.append((threading.current_thread().name, ctx))}, "h")
    ((thread, context),) = seen
    assert thread.startswith("handler")
    assert (context.attempt, context.idempotency_key, context.payload) == (3, "job/x", {"a": 1})


def test_unregistered_name_is_never_imported() -> None:
    result = attempt({}, "os:getcwd")
    assert result == Failed("handler 'os:getcwd' is not registered here", retryable=False)


def test_modules_give_their_own_public_functions_only() -> None:
    module = "tests.unit.executor.targets.sample"
    assert set(load_handlers([module])) >= {f"{module}:greet"}
    assert f"{module}:_hidden" not in load_handlers([module])
    assert f"{module}:join" not in load_handlers([module])


def test_unknown_module_is_the_operators_mistake() -> None:
    with pytest.raises(ConfigError, match="no_such_module"):
        load_handlers(["no_such_module"])
