"""docs/configuration.md, made from the settings themselves.

``python -m duewheel.settings_doc`` writes the page, ``--check`` only says whether it is current
(exit code 1 when it is not). Descriptions are the ``Attributes:`` of the classes' docstrings.
"""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from executor.settings import ExecutorSettings
from scheduler.settings import KafkaSettings, SchedulerSettings

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"

_INTRODUCTION = """\
# Configuration

Every setting is an environment variable; there is no configuration file. A value that is not
valid ends the process at its start with exit code 3 and the name of the variable.

<!-- Made by `python -m duewheel.settings_doc` from the settings classes; do not edit. -->
"""

_SECTIONS: tuple[tuple[str, str, type[KafkaSettings]], ...] = (
    ("Every process", "Commands of the command line included.", KafkaSettings),
    ("`duewheel scheduler`", "A scheduler worker.", SchedulerSettings),
    ("`duewheel executor`", "An executor.", ExecutorSettings),
)

_ATTRIBUTE = re.compile(r"^(\w+): (.*)$")


def page() -> str:
    """The whole page, in Markdown."""
    parts = [_INTRODUCTION]
    for title, sentence, settings in _SECTIONS:
        inherited = set() if settings is KafkaSettings else set(KafkaSettings.model_fields)
        rows = [
            _row(settings, name, field)
            for name, field in settings.model_fields.items()
            if name not in inherited
        ]
        head = "| variable | default | allowed | meaning |\n|---|---|---|---|"
        parts.append("\n".join([f"## {title}\n\n{sentence}\n\n{head}", *rows]) + "\n")
    return "\n".join(parts)


def descriptions(settings: type) -> dict[str, str]:
    """What the ``Attributes:`` sections of a class and its bases say of each of its fields."""
    found: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        if base.__module__.startswith(("scheduler", "executor")):
            found |= _attributes(base)
    return found


def _attributes(settings: type) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    inside = False
    for line in (inspect.getdoc(settings) or "").splitlines():
        if line == "Attributes:":
            inside = True
        elif inside and line.startswith("    "):
            if begin := _ATTRIBUTE.match(line[4:]):
                name = begin[1]
                found[name] = begin[2]
            elif name:
                found[name] += f" {line.strip()}"
        elif line.strip():
            inside = False
    return found


def variable(name: str, field: FieldInfo, prefix: str) -> str:
    """The environment variable of a field."""
    alias = field.validation_alias
    choices = getattr(alias, "choices", None)
    return str(choices[0]) if choices else f"{prefix}{name}".upper()


def _row(settings: type[KafkaSettings], name: str, field: FieldInfo) -> str:
    prefix = str(settings.model_config.get("env_prefix", ""))
    cells = (
        f"`{variable(name, field, prefix)}`",
        _default(field),
        _allowed(settings, name),
        descriptions(settings).get(name, ""),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ("", {}, (), []):
        return "unset"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _allowed(settings: type[KafkaSettings], name: str) -> str:
    schema = settings.model_json_schema(by_alias=False)
    plain = _resolve(schema["properties"][name], schema)
    if choices := plain.get("enum"):
        return ", ".join(f"`{choice}`" for choice in choices)
    low, high = plain.get("minimum"), plain.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return str(plain.get("type", plain.get("format", "text"))).replace("string", "text")


def _resolve(plain: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    for choice in plain.get("anyOf", ()):
        if choice.get("type") != "null":
            plain = choice
            break
    if reference := plain.get("$ref"):
        return dict(schema["$defs"][reference.rpartition("/")[2]])
    return plain


def main(arguments: list[str]) -> int:
    """Write the page, or check it; returns the exit code."""
    made = page()
    if "--check" not in arguments:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made:
        return 0
    sys.stderr.write(f"{PAGE.name} is not current: run python -m duewheel.settings_doc\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
