"""JSON as the contract reads it: one meaning or none.

Stricter than RFC 8259 asks for, since a definition is read by several programs in several
languages: no duplicate keys, no NaN or Infinity, no number beyond a double, no lone
surrogates, bounded depth.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

from pydantic_core import PydanticSerializationError, to_json

from scheduler.contract.limits import LIMITS, Limits
from scheduler.errors import RequestError


def read_json(value: bytes, limits: Limits = LIMITS) -> Any:
    """The value that ``value`` spells.

    Raises:
        RequestError: it is not UTF-8, not JSON, or ambiguous JSON; the message says where.

    >>> read_json(b'{"a":1,"a":2}')
    Traceback (most recent call last):
    scheduler.errors.RequestError: the key "a" is given twice in one object
    """
    try:
        text = value.decode()
        read = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise RequestError(f"not UTF-8: byte {error.start} is 0x{value[error.start]:02x}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        what = error.msg.lower().removesuffix(" at")
        raise RequestError(f"not JSON: {what} at {where}") from None
    except RecursionError:
        raise RequestError(_too_deep(limits.depth_max)) from None
    except ValueError:  # Python refuses to read integers of more than 4,300 digits
        raise RequestError("a number has too many digits (more than 4,300)") from None
    # Each level costs a bracket, so the exact depth matters only for values with many of them.
    if value.count(b"[") + value.count(b"{") > limits.depth_max and _deeper(read, limits.depth_max):
        raise RequestError(_too_deep(limits.depth_max))
    if "\\u" in text:
        _refuse_lone_surrogates(read)
    return read


def read_object(value: bytes, limits: Limits = LIMITS) -> dict[str, Any]:
    """The JSON object that ``value`` spells. Raises `RequestError` for anything else."""
    read = read_json(value, limits)
    if type(read) is not dict:
        raise RequestError(f"a JSON object is expected, not {_kind(read)}")
    return read


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        double = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise RequestError(f"the key {json.dumps(double)[:80]} is given twice in one object")
    return members


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise RequestError(f"the number {text[:40]} is beyond what a double can hold")
    return number


def _not_a_number(text: str) -> NoReturn:
    raise RequestError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_number, parse_constant=_not_a_number
)


def _deeper(value: Any, levels: int) -> bool:
    """Whether ``value`` nests more than ``levels`` objects and arrays; a loop, not recursion."""
    layer = [value]
    for _ in range(levels):
        layer = [child for item in layer for child in _children(item)]
        if not layer:
            return False
    return any(isinstance(item, dict | list) for item in layer)


def _children(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        to_json(value)
    except (PydanticSerializationError, UnicodeEncodeError):
        reason = "a string holds half of a surrogate pair (\\ud800 to \\udfff on its own)"
        raise RequestError(reason) from None


def _too_deep(levels: int) -> str:
    return f"objects and arrays are nested more than {levels} deep"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "a number"
