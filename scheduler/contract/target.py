"""Where a run goes: the ``target`` of a definition and of a run command."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, Tag

from scheduler.contract.message import AnyCase, StrictMessage, tagged_by

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header's name. Source: RFC 9110, section 5.6.2."""

_RESERVED = frozenset({"connection", "content-length", "host", "transfer-encoding"})
"""Headers that belong to the HTTP client; set by hand they would smuggle requests."""


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or any(character <= " " or character == "\x7f" for character in url):
        raise ValueError("is not an http or https address with a host")
    if parts.username is not None or parts.fragment:
        raise ValueError("must hold neither credentials nor a fragment")
    return url


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if _TOKEN.fullmatch(name) is None:
            raise ValueError(f"{name[:60]!r} is not the name of a header")
        if name.lower() in _RESERVED:
            raise ValueError(f"{name} is set by the HTTP client itself")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"the value of {name} must be printable ASCII")
    return headers


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _not_internal(topic: str) -> str:
    if topic.startswith("__"):
        raise ValueError("topics whose names begin with __ are Kafka's own")
    return topic


Topic = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$"), AfterValidator(_not_internal)
]
"""Name of a Kafka topic that runs may be delivered to."""

StatusCode = Annotated[int, Field(ge=100, le=599)]


class NoTarget(StrictMessage):
    """Dispatch is all; nothing is tracked after."""

    kind: Annotated[Literal["none"], AnyCase] = "none"


class KafkaTarget(StrictMessage):
    """A message produced in the transaction that records the success."""

    kind: Annotated[Literal["kafka"], AnyCase] = "kafka"
    topic: Topic
    key: str | None = Field(default=None, max_length=10_000)
    headers: dict[str, str] = Field(default_factory=dict, max_length=50)


class HttpTarget(StrictMessage):
    """An HTTP request; ``success`` lists the status codes that count (empty: every 2xx)."""

    kind: Annotated[Literal["http"], AnyCase] = "http"
    url: Annotated[str, Field(max_length=2_048), AfterValidator(_checked_url)]
    method: Annotated[
        Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(_upper)
    ] = "POST"
    headers: Annotated[dict[str, str], Field(max_length=50), AfterValidator(_checked_headers)] = (
        Field(default_factory=dict)
    )
    success: tuple[StatusCode, ...] = Field(default=(), max_length=50)


class PythonTarget(StrictMessage):
    """A handler registered with the executor under this name."""

    kind: Annotated[Literal["python"], AnyCase] = "python"
    handler: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]{0,254}$")]


class ExternalTarget(StrictMessage):
    """Someone consumes the run topic and reports under a lease."""

    kind: Annotated[Literal["external"], AnyCase] = "external"
    start_within_seconds: int = Field(default=3_600, ge=1, le=7 * 86_400)


Target = Annotated[
    Annotated[NoTarget, Tag("none")]
    | Annotated[KafkaTarget, Tag("kafka")]
    | Annotated[HttpTarget, Tag("http")]
    | Annotated[PythonTarget, Tag("python")]
    | Annotated[ExternalTarget, Tag("external")],
    tagged_by("kind"),
]
"""One of the kinds of target, told apart by ``kind``."""
