"""HTTP attempts against answers made up by a transport: the documented outcome of each."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from executor.core.outcome import Failed, Result, Succeeded
from executor.targets.http import RESPONSE_BYTES_MAX, HttpTarget
from executor.targets.order import Order

Answer = Callable[[httpx.Request], httpx.Response]


def order(**target: Any) -> Order:
    described = {"kind": "http", "url": "http://target.test/run"} | target
    return Order("job", "job@x", "2026-01-01T00:00:00.000Z", 2, "job/x", 5.0, described, {"a": 1})


def attempt(answer: Answer, **target: Any) -> Result:
    async def once() -> Result:
        http = HttpTarget(transport=httpx.MockTransport(answer))
        try:
            return await http.attempt(order(**target))
        finally:
            await http.close()

    return asyncio.run(once())


def answering(code: int, **more: Any) -> Answer:
    return lambda _: httpx.Response(code, stream=httpx.ByteStream(b""), **more)


@pytest.mark.parametrize("code", [200, 201, 204])
def test_success(code: int) -> None:
    assert attempt(answering(code)) == Succeeded()


@pytest.mark.parametrize(("code", "retryable"), [
    (301, False), (400, False), (404, False), (409, False),
    (408, True), (425, True), (429, True), (500, True), (503, True),
])  # fmt: skip
def test_failure(code: int, retryable: bool) -> None:
    assert attempt(answering(code)) == Failed(f"HTTP {code}", retryable)


def test_success_codes_replace_the_default() -> None:
    assert attempt(answering(409), success=[409]) == Succeeded()
    assert attempt(answering(200), success=[409]) == Failed("HTTP 200", retryable=False)


def test_request_says_what_it_is_for() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answering(200)(request)

    attempt(answer, method="PUT", headers={"X-Own": "1"})
    (request,) = seen
    assert (request.method, request.content) == ("PUT", b'{"a":1}')
    wanted = {"idempotency-key": "job/x", "x-job-id": "job", "x-attempt": "2", "x-own": "1",
              "x-scheduled-at": "2026-01-01T00:00:00.000Z",
              "content-type": "application/json"}  # fmt: skip
    assert wanted.items() <= dict(request.headers).items()
    assert request.headers["traceparent"].startswith("00-")


def test_redirect_is_not_followed() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return answering(302, headers={"Location": "http://elsewhere.test/"})(request)

    assert attempt(answer) == Failed("HTTP 302", retryable=False)
    assert seen == ["http://target.test/run"]


@pytest.mark.parametrize(("headers", "after_ms"), [
    ({"Retry-After": "7"}, 7000),
    ({"Retry-After": "Thu, 01 Jan 2026 00:01:00 GMT", "Date": "Thu, 01 Jan 2026 00:00:30 GMT"},
     30_000),
    ({"Retry-After": "Thu, 01 Jan 2026 00:01:00 GMT", "Date": "Thu, 01 Jan 2026 00:02:00 GMT"}, 0),
    ({"Retry-After": "soon"}, None),
    ({}, None),
])  # fmt: skip
def test_retry_after(headers: dict[str, str], after_ms: int | None) -> None:
    result = attempt(answering(503, headers=headers))
    assert result == Failed("HTTP 503", retry_after_ms=after_ms)


def test_retry_after_counts_only_where_it_is_meant() -> None:
    result = attempt(answering(500, headers={"Retry-After": "7"}))
    assert result == Failed("HTTP 500")


@pytest.mark.parametrize("error", [
    httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.RemoteProtocolError("garbage"),
])  # fmt: skip
def test_connection_trouble_passes(error: httpx.HTTPError) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    assert attempt(answer) == Failed(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("target", [{"url": "no-url"}, {"url": "ftp://a/"}, {"method": "BREW"}])
def test_impossible_request_is_not_tried_again(target: dict[str, str]) -> None:
    result = attempt(answering(200), **target)
    assert isinstance(result, Failed)
    assert not result.retryable


class EndlessBody(httpx.AsyncByteStream):
    def __init__(self) -> None:
        self.pieces = 0

    async def __aiter__(self):  # type: ignore[no-untyped-def]
        while True:
            self.pieces += 1
            yield b"x" * 1000


def test_endless_body_is_read_to_a_bound() -> None:
    body = EndlessBody()
    result = attempt(lambda _: httpx.Response(500, stream=body))
    assert isinstance(result, Failed)
    assert len(result.error) <= RESPONSE_BYTES_MAX + 20
    assert body.pieces < 10
