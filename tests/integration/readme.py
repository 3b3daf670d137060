"""The commands of README.md, taken from it so that they cannot drift from what works."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def commands(section: str) -> list[str]:
    """The shell blocks below a heading of README.md, in order."""
    text = README.read_text(encoding="utf-8")
    _, _, after = text.partition(f"\n## {section}\n")
    body, _, _ = after.partition("\n## ")
    return re.findall(r"```sh\n(.*?)```", body, flags=re.DOTALL)


def adapted(command: str, prefix: str) -> str:
    """The same command for topics with a prefix."""
    return re.sub(r"--topic (\S+)", rf"--topic {prefix}\1", command)
