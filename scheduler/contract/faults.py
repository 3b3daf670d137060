"""What is wrong with an input, in words for whoever wrote it, all of it at once."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

Fault = tuple[str, str]
"""(field path, reason)."""

Models = Sequence[type[BaseModel]]
"""One model, or the members of a union that a tag (``kind`` or ``command``) tells apart."""

_SUBJECT = re.compile("^[A-Z][a-z]+ should")
"""How pydantic begins its messages; ours begin with the field."""

_QUOTES = "'()"
"""Pydantic quotes the name of a field, and adds brackets to that of a function."""

_TEXT_CHARS_MAX = 60


def join_faults(faults: Iterable[Fault]) -> str:
    """All faults of an input on one line."""
    return "; ".join(f"{path}: {reason}" if path else reason for path, reason in faults)


def faults_of(error: ValidationError, models: Models) -> list[Fault]:
    """Every fault that pydantic found, with its path as the contract spells it."""
    faults = []
    for detail in error.errors(include_url=False):
        path, inside = _walk(detail["loc"], models)
        faults.append((".".join(path), _reason(detail, inside)))
    return faults


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, whatever its case."""
    folded = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word[:100].lower(), list(folded), n=1)
    return folded[found[0]] if found else None


def hint(word: str, known: Iterable[str]) -> str:
    """A question to append to a message about an unknown word, or nothing.

    >>> hint("Kafak", ["kafka", "http"])
    '; did you mean kafka?'
    """
    guess = nearest(word, known)
    return f"; did you mean {guess}?" if guess else ""


def cut(value: object) -> str:
    """A value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _TEXT_CHARS_MAX else text[: _TEXT_CHARS_MAX - 3] + "..."


def _walk(loc: Sequence[int | str], models: Models) -> tuple[list[str], Models]:
    """Field path without pydantic's union tags, and the models that hold its last field."""
    path: list[str] = []
    inside, here = models, models
    for part in loc:
        tagged = [model for model in here if part in _tags(model)]
        if len(here) > 1 and tagged:
            here = tagged
            continue
        inside = here
        shown = next((_names(model)[part] for model in here if part in _names(model)), None)
        path.append(str(part) if shown is None else shown)
        if shown is not None:
            here = _models_in(here, part)
    return path, inside


def _names(model: type[BaseModel]) -> Mapping[int | str, str]:
    """Every accepted spelling of a model's fields, and how the contract spells it."""
    names: dict[int | str, str] = {}
    for name in model.model_fields:
        shown = name.rstrip("_")  # ``from`` is a word of Python
        names |= {name: shown, to_camel(name): shown, shown: shown}
    return names


def _tags(model: type[BaseModel]) -> set[Any]:
    fields = model.model_fields
    return {fields[name].default for name in ("kind", "command") if name in fields}


def _models_in(models: Models, part: int | str) -> Models:
    """The models that a field may hold."""
    fields = [
        field
        for model in models
        for name, field in model.model_fields.items()
        if part in (name, to_camel(name), name.rstrip("_"))
    ]
    return [model for field in fields for model in _models_of(field.annotation)]


def _models_of(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for inner in getattr(annotation, "__args__", ()) for m in _models_of(inner)]


def _reason(detail: ErrorDetails, inside: Models) -> str:
    given, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return _unknown(str(detail["loc"][-1]), inside)
        case "missing":
            return "is required"
        case "value_error":
            return str(context["error"])
        case "union_tag_not_found":
            return f"needs a {context['discriminator'].strip(_QUOTES)}"
        case "union_tag_invalid":
            tags = [tag.strip("' ") for tag in context["expected_tags"].split(",")]
            return f"{cut(context['tag'])} is none of {', '.join(tags)}{hint(context['tag'], tags)}"
    message = _SUBJECT.sub("should", detail["msg"], count=1)
    return message if isinstance(given, dict | list) else f"{message}, not {cut(given)}"


def _unknown(name: str, inside: Models) -> str:
    names = {spelling: shown for model in inside for spelling, shown in _names(model).items()}
    if name in names:
        return f"is given twice: {names[name]} and {to_camel(names[name])} are the same field"
    return f"unknown field{hint(name, sorted(set(names.values())))}"
