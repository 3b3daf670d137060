"""A measured figure, its goal, and the table of them."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value.

    Attributes:
        name: what was measured.
        value: in ``unit``.
        conditions: what the value depends on: N, sizes, settings.
        ratio: value divided by that of a reference measured in the same run.
        reference: name of that reference.
        goal: what is wanted, for people; empty for none.
        met: whether the goal was reached; ``None`` without a goal.
    """

    name: str
    value: float
    unit: str
    conditions: str = ""
    ratio: float | None = None
    reference: str = ""
    goal: str = ""
    met: bool | None = None

    def beside(self, reference: "Figure") -> "Figure":
        """This figure with its ratio to ``reference``."""
        return replace(self, ratio=self.value / reference.value, reference=reference.name)

    def at_least(self, limit: float) -> "Figure":
        """This figure with a lower limit on its value."""
        return replace(self, goal=f">= {limit:,.10g}", met=self.value >= limit)

    def at_most(self, limit: float) -> "Figure":
        """This figure with an upper limit on its value."""
        return replace(self, goal=f"<= {limit:,.10g}", met=self.value <= limit)

    def ratio_at_least(self, limit: float) -> "Figure":
        """This figure with a lower limit on its ratio."""
        met = self.ratio is not None and self.ratio >= limit
        return replace(self, goal=f"ratio >= {limit:g}", met=met)


def quantile(sorted_values: Sequence[float], share: float) -> float:
    """The value that ``share`` of the sorted values do not exceed (nearest rank).

    >>> quantile([10, 20, 30, 40], 0.5), quantile([10, 20, 30, 40], 0.99)
    (20, 40)
    """
    rank = -int(-share * len(sorted_values) // 1)
    return sorted_values[max(rank, 1) - 1]


def machine() -> str:
    """The conditions every figure shares."""
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"load average before the run {load:.1f}"
    )


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned text, one line each."""
    rows = [("figure", "value", "ratio", "goal", "", "conditions")]
    rows += [_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)


def _row(figure: Figure) -> tuple[str, str, str, str, str, str]:
    digits = 0 if figure.value >= 100 else 2
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} of {figure.reference}"
    verdict = {None: "", True: "met", False: "MISSED"}[figure.met]
    value = f"{figure.value:,.{digits}f} {figure.unit}"
    return figure.name, value, ratio, figure.goal, verdict, figure.conditions
