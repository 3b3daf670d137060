"""Dates on which nothing fires: ``calendars``."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from scheduler.contract.message import StrictMessage


class Weekday(StrEnum):
    """Days of the week."""

    MON = "MON"
    TUE = "TUE"
    WED = "WED"
    THU = "THU"
    FRI = "FRI"
    SAT = "SAT"
    SUN = "SUN"


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) and not isinstance(value, Weekday) else value


class DateRange(StrictMessage):
    """Whole local dates, both ends included."""

    from_: date = Field(alias="from")
    to: date

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.to < self.from_:
            raise ValueError("to lies before from")
        return self


class Calendar(StrictMessage):
    """Local dates, in each job's own zone."""

    dates: tuple[date, ...] = Field(default=(), max_length=10_000)
    ranges: tuple[DateRange, ...] = Field(default=(), max_length=1_000)
    weekdays: tuple[Annotated[Weekday, BeforeValidator(_upper)], ...] = Field(
        default=(), max_length=7
    )
    description: str | None = Field(default=None, max_length=1_000)
