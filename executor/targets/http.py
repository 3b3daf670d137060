"""Targets of kind ``http``: one request an attempt, over one well-kept client.

Redirects are not followed: a redirect answers a question that was not asked, and would carry
the payload to a place nobody configured.

Not here yet: a guard against requests to private, loopback and metadata addresses. Until it
is, whoever may write definitions can reach whatever the executor can reach: run executors in
a network where that is acceptable, or keep writing to ``jobs`` to trusted people.
"""

from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime

import httpx

from executor.core.codec import json_bytes
from executor.core.outcome import Failed, Result, Succeeded, retryable_status
from executor.targets.order import Order

RESPONSE_BYTES_MAX = 4096
"""Read of a response at most: it is only ever quoted in an error, which is cut there."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class HttpTarget:
    """Sends requests. ``connections_max`` bounds open connections, to all hosts together."""

    def __init__(self, connections_max: int = 100,
                 transport: httpx.AsyncBaseTransport | None = None) -> None:  # fmt: skip
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            timeout=None,  # the attempt's own time-out covers the whole exchange
            limits=httpx.Limits(max_connections=connections_max,
                                max_keepalive_connections=connections_max),
            transport=transport,
            trust_env=False,
        )  # fmt: skip

    async def attempt(self, order: Order) -> Result:
        """One request. Connection troubles are retryable, an impossible request is not."""
        try:
            request = self._request(order)
        except (httpx.InvalidURL, TypeError, ValueError) as error:
            return Failed(f"the request cannot be made: {error}", retryable=False)
        try:
            response = await self._client.send(request, stream=True)
            try:
                return await _judged(response, _success_codes(order))
            finally:
                await response.aclose()
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            return Failed(f"the request cannot be made: {error}", retryable=False)
        except httpx.HTTPError as error:
            return Failed(f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close idle connections."""
        await self._client.aclose()

    def _request(self, order: Order) -> httpx.Request:
        target = order.target
        method = str(target.get("method") or "POST").upper()
        if method not in _METHODS:
            raise ValueError(f"method {method} is not one of {', '.join(sorted(_METHODS))}")
        url = httpx.URL(str(target.get("url") or ""))
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"{str(url)[:100]!r} is not an http or https address")
        own = target.get("headers")
        headers = {str(k): str(v) for k, v in own.items()} if isinstance(own, Mapping) else {}
        names = {name.lower() for name in headers}
        if "content-type" not in names:
            headers["Content-Type"] = "application/json"
        headers |= order.headers()
        body = None if method in ("GET", "HEAD") else json_bytes(order.payload)
        return self._client.build_request(method, url, headers=headers, content=body)


def _success_codes(order: Order) -> frozenset[int]:
    codes = order.target.get("success")
    listed = codes if isinstance(codes, Sequence) and not isinstance(codes, str) else ()
    return frozenset(code for code in listed if isinstance(code, int))


async def _judged(response: httpx.Response, success: frozenset[int]) -> Result:
    code = response.status_code
    good = code in success if success else response.is_success
    body = await _beginning(response)
    if good:
        return Succeeded()
    text = body.decode("utf-8", "replace").strip()
    error = f"HTTP {code}: {text}" if text else f"HTTP {code}"
    after_ms = _retry_after_ms(response) if code in (429, 503) else None
    return Failed(error, retryable_status(code), after_ms)


async def _beginning(response: httpx.Response) -> bytes:
    """At most `RESPONSE_BYTES_MAX` of the body. A longer one costs its connection, which is
    cheaper than reading on for as long as the sender likes.
    """
    read = bytearray()
    async for piece in response.aiter_raw(RESPONSE_BYTES_MAX):
        read += piece
        if len(read) >= RESPONSE_BYTES_MAX:
            break
    return bytes(read[:RESPONSE_BYTES_MAX])


def _retry_after_ms(response: httpx.Response) -> int | None:
    """Milliseconds until the target wants to be tried again; both forms of the header.

    A date is measured against the response's own ``Date``: the two clocks need not agree.
    Source: RFC 9110, section 10.2.3.
    """
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return 1000 * int(text[:9])
    try:
        until = parsedate_to_datetime(text)
        sent = parsedate_to_datetime(response.headers.get("Date", ""))
        return max(0, int((until - sent).total_seconds() * 1000))
    except (TypeError, ValueError):
        return None
