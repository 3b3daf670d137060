"""What all messages share: names, instants, errors, bytes.

A message is read from JSON bytes by `Message.decode` and written by `Message.encode`. Fields
are snake_case on topics; camelCase is accepted everywhere. Instants are epoch milliseconds
inside and RFC 3339 text outside.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

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
        raise ValueError(f"{_cut(text)} is not an instant; write e.g. 2026-11-30T09:00:00Z")
    try:
        ms = parse_instant(text.upper())
    except (ValueError, OverflowError):
        raise ValueError(f"{_cut(text)} names no moment of the calendar") from None
    if not 0 <= ms <= MAX_MS:
        raise ValueError(f"{_cut(text)} lies outside of 1970 to 9999")
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


class Message(BaseModel):
    """Base of all messages; a value, never changed once made."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=False,
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
            raise RequestError(join_faults(faults_of(error, cls))) from None

    def encode(self) -> bytes:
        """Compact JSON with every field, as it lies on the topic."""
        return self.__pydantic_serializer__.to_json(self)


class StrictMessage(Message):
    """Base of what people write: a field that is not known is a mistake to be told."""

    model_config = ConfigDict(extra="forbid")


Fault = tuple[str, str]
"""(field path, reason)."""


def join_faults(faults: Sequence[Fault]) -> str:
    """All faults of an input on one line."""
    return "; ".join(f"{path}: {reason}" if path else reason for path, reason in faults)


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """Every fault of an input, with its path, in words for whoever wrote it."""
    details = error.errors(include_url=False, include_context=True)
    return [(_path(detail, model), _reason(detail, model)) for detail in details]


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that was probably meant, whatever its case."""
    folded = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word[:100].lower(), list(folded), n=1)
    return folded[found[0]] if found else None


def _path(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Dotted path without the names pydantic puts in for the member of a union."""
    kinds = _union_tags(model)
    parts = [str(part) for part in detail["loc"]]
    kept = [part for at, part in enumerate(parts) if at == 0 or part not in kinds]
    return ".".join(_snake(part, model) if at == 0 else part for at, part in enumerate(kept))


def _reason(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _unknown(str(detail["loc"][-1]), _known_at(detail["loc"], model))
    if kind == "missing":
        return "is required"
    if kind == "union_tag_not_found":
        return f"needs a {detail['ctx']['discriminator'].strip(chr(39))}"
    if kind == "union_tag_invalid":
        guess = nearest(str(detail["ctx"]["tag"]), _tags(detail))
        hint = f"; did you mean {guess}?" if guess else ""
        return f"{detail['ctx']['tag'][:60]!r} is none of {', '.join(_tags(detail))}{hint}"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    message = detail["msg"].replace("Input should", "should")
    message = message[0].lower() + message[1:]
    return f"{message}, not {_cut(given)}" if not isinstance(given, dict | list) else message


def _tags(detail: ErrorDetails) -> list[str]:
    return [tag.strip("' ") for tag in str(detail["ctx"]["expected_tags"]).split(",")]


def _unknown(name: str, known: Mapping[str, str]) -> str:
    if name in known:
        return f"is given twice: {known[name]} and {to_camel(known[name])} are the same field"
    guess = nearest(name, list(known.values()))
    hint = f"; did you mean {guess}?" if guess else ""
    return f"unknown field{hint}"


def _known_at(loc: Sequence[int | str], model: type[BaseModel]) -> dict[str, str]:
    """Names (both spellings) of the fields where ``loc`` points to."""
    found: type[BaseModel] = model
    for part in loc[:-1]:
        found = _models_of(found, str(part)) or found
    known = {name: name for name in found.model_fields}
    return known | {to_camel(name): name for name in found.model_fields}


def _models_of(model: type[BaseModel], part: str) -> type[BaseModel] | None:
    """The model behind a union tag, for errors inside a target."""
    for field in model.model_fields.values():
        for member in _members(field.annotation):
            kind = member.model_fields.get("kind")
            if kind is not None and kind.default == part:
                return member
    return None


def _members(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [m for argument in getattr(annotation, "__args__", ()) for m in _members(argument)]


def _union_tags(model: type[BaseModel]) -> set[str]:
    return {
        str(member.model_fields["kind"].default)
        for field in model.model_fields.values()
        for member in _members(field.annotation)
        if "kind" in member.model_fields
    }


def _snake(part: str, model: type[BaseModel]) -> str:
    for name in model.model_fields:
        if part == to_camel(name):
            return name
    return part


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
