"""Targets of kind ``python``: functions that were registered with this executor by name.

A definition names a handler; it never names something to import. A name is known when an
installed distribution declares it as an entry point of the group ``duewheel.handlers``, or when
it is ``module:function`` of a module the operator listed in the setting ``handlers``.

A coroutine function runs on the event loop and must not block it. Any other function runs in a
thread; a thread cannot be stopped, so one that outlives its time-out goes on beside the next
attempt: it should look at the attempt number before it does harm.
"""

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points

from executor.core.outcome import Cancelled, Failed, Result, Succeeded
from executor.handlers import Cancel, Fail, Retry, RunContext
from executor.targets.order import Order
from scheduler.errors import ConfigError

GROUP = "duewheel.handlers"

Handler = Callable[[RunContext], object]


class PythonTarget:
    """Calls registered handlers. ``threads_max`` bounds those that are no coroutines."""

    def __init__(self, handlers: Mapping[str, Handler], threads_max: int = 16) -> None:
        self._handlers = dict(handlers)
        self._threads = ThreadPoolExecutor(threads_max, thread_name_prefix="handler")

    async def attempt(self, order: Order) -> Result:
        """Call the handler. An exception of its own is a retryable failure."""
        name = str(order.target.get("handler"))
        handler = self._handlers.get(name)
        if handler is None:
            return Failed(f"handler {name!r} is not registered here", retryable=False)
        context = RunContext(order.job_id, order.run_id, order.scheduled_at, order.attempt,
                             order.idempotency_key, order.payload)  # fmt: skip
        try:
            answer = await self._call(handler, context)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            return Failed(f"{type(error).__name__}: {error}")
        return _result(answer)

    async def close(self) -> None:
        """Take no more calls. Threads still at work are left to end with the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, handler: Handler, context: RunContext) -> object:
        if inspect.iscoroutinefunction(handler):
            return await handler(context)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, handler, context)


def load_handlers(modules: Sequence[str]) -> dict[str, Handler]:
    """Every handler that may be called: entry points, and public functions of ``modules``.

    Raises:
        ConfigError: a module cannot be imported, or a name is not a function.
    """
    found: dict[str, Handler] = {}
    for point in entry_points(group=GROUP):
        try:
            found[point.name] = point.load()
        except (AttributeError, ImportError) as error:
            raise ConfigError(f"handler {point.name} ({point.value}): {error}") from error
    for module in modules:
        found |= _functions_of(module)
    return found


def _functions_of(module: str) -> dict[str, Handler]:
    try:
        members = vars(importlib.import_module(module))
    except ImportError as error:
        raise ConfigError(f"module {module} of the handlers setting: {error}") from error
    return {
        f"{module}:{name}": member
        for name, member in members.items()
        if inspect.isfunction(member) and member.__module__ == module and name[0] != "_"
    }


def _result(answer: object) -> Result:
    match answer:
        case Retry(after_seconds=after_s, reason=reason):
            return Failed(reason, retry_after_ms=max(0, int(after_s * 1000)))
        case Fail(reason=reason):
            return Failed(reason, retryable=False)
        case Cancel(reason=reason):
            return Cancelled(reason)
        case _:
            return Succeeded()
