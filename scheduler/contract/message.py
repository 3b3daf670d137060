"""What all messages share: names, instants, errors, bytes.

A message is read from JSON bytes by `Message.decode` and written by `Message.encode`. Fields
are snake_case on topics; camelCase is accepted everywhere. Instants are epoch milliseconds
inside and RFC 3339 text outside.
"""

import re
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from scheduler.contract.faults import cut, faults_of, join_faults
from scheduler.contract.limits import LIMITS, Limits
from scheduler.contract.strict_json import read_object
from scheduler.core.instant import MAX_MS, format_instant, parse_instant
from scheduler.errors import RequestError

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def read_instant(text: str) -> int:
    """Epoch milliseconds of an RFC 3339 instant from 1970 to 9999. Raises ValueError."""
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(f"{cut(text)} is not an instant; write e.g. 2026-11-30T09:00:00Z")
    try:
        ms = parse_instant(text.upper())
    except (ValueError, OverflowError):
        raise ValueError(f"{cut(text)} names no moment of the calendar") from None
    if not 0 <= ms <= MAX_MS:
        raise ValueError(f"{cut(text)} lies outside of 1970 to 9999")
    return ms


def _to_instant(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str):
        return read_instant(value)
    if info.mode == "json":
        raise ValueError("should be an instant; write e.g. 2026-11-30T09:00:00Z")
    return value


Instant = Annotated[
    int,
    BeforeValidator(_to_instant),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Epoch milliseconds inside, RFC 3339 text outside."""


def lower(value: object) -> object:
    """Accept enum values in any case."""
    return value.lower() if isinstance(value, str) and not isinstance(value, StrEnum) else value


AnyCase = BeforeValidator(lower)


def tagged_by(name: str) -> Discriminator:
    """What tells the members of a union apart: the field ``name``, in any case.

    It only looks: a validator that changed the object before the union would turn its arrays
    into lists, which a strict model does not take for tuples.
    """

    def tag(value: Any) -> Any:
        return lower(value.get(name) if isinstance(value, dict) else getattr(value, name, None))

    tag.__name__ = name
    return Discriminator(tag)


class Message(BaseModel):
    """Base of all messages; a value, never changed once made."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        alias_generator=AliasGenerator(validation_alias=to_camel),
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_inf_nan="constants",
    )

    @classmethod
    def decode(cls, value: bytes, limits: Limits = LIMITS) -> Self:
        """Read and check one value of a topic.

        Raises:
            RequestError: it is not what the contract says; the message names each field.
        """
        try:
            read_object(value, limits)
            return cls.model_validate_json(value)
        except ValidationError as error:
            raise RequestError(join_faults(faults_of(error, [cls]))) from None

    def encode(self) -> bytes:
        """Compact JSON with every field, as it lies on the topic."""
        return self.__pydantic_serializer__.to_json(self)


class StrictMessage(Message):
    """Base of what people write: a field that is not known is a mistake to be told."""

    model_config = ConfigDict(extra="forbid")
