"""Cost of compiling definitions, as a store rebuild does it.

``python -m tests.performance.compile_rate`` prints it. Ids, payloads and targets differ,
schedules repeat, as in a real ``jobs`` topic.
"""

import json
import time
from collections.abc import Callable

from scheduler.contract.compile import compile_job

COUNT = 100_000
ROUNDS = 3


def _cron(number: int) -> dict[str, object]:
    return {
        "schedule": f"{number % 60} 2 * * *",
        "time_zone": "Europe/Istanbul",
        "target": {"kind": "http", "url": "https://reports.internal/run"},
        "payload": {"report": number, "pages": [1, 2, 3]},
    }


def _every(number: int) -> dict[str, object]:
    return {"every": f"PT{number % 10 + 1}S", "payload": {"n": number}}


def _one_shot(number: int) -> dict[str, object]:
    return {
        "type": "ORDER_AUTO_CANCEL",
        "run_at": f"2030-10-23T14:{number // 60 % 60:02d}:{number % 60:02d}Z",
        "target": {"kind": "kafka", "topic": "order-commands", "key": str(number)},
        "payload": {"orderId": number},
        "max_attempts": 5,
        "timeout_seconds": 60,
    }


def _jittered(number: int) -> dict[str, object]:
    return _cron(number) | {"jitter_seconds": 300, "labels": {"team": "shop"}}


def _hashed(number: int) -> dict[str, object]:
    return _cron(number) | {"schedule": "H H * * *"}


KINDS: dict[str, Callable[[int], dict[str, object]]] = {
    "cron": _cron,
    "every": _every,
    "one-shot, a target each": _one_shot,
    "cron with jitter": _jittered,
    "cron with H": _hashed,
}


def microseconds_each(make: Callable[[int], dict[str, object]]) -> float:
    """Best of a few rounds, microseconds for one definition."""
    values = [json.dumps(make(n), separators=(",", ":")).encode() for n in range(COUNT)]
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for number, value in enumerate(values):
            compile_job(f"job-{number}", value, number)
        best = min(best, time.perf_counter() - began)
    return best / COUNT * 1e6


def main() -> None:
    """Print the figures."""
    for name, make in KINDS.items():
        cost = microseconds_each(make)
        print(f"{name:<26} {cost:6.1f} us   {1e6 / cost:9,.0f} definitions/s")


if __name__ == "__main__":
    main()
