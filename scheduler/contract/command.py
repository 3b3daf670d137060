"""What users ask of a job beside its schedule: ``job-commands``."""

from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from scheduler.contract.faults import faults_of, join_faults
from scheduler.contract.limits import LIMITS, Limits
from scheduler.contract.message import AnyCase, Instant, StrictMessage, tagged_by
from scheduler.contract.run import CommandId
from scheduler.contract.strict_json import read_object
from scheduler.errors import RequestError


class TriggerCommand(StrictMessage):
    """Run the job now. A given ``payload``, null included, replaces the job's."""

    command: Annotated[Literal["trigger"], AnyCase] = "trigger"
    command_id: CommandId
    payload: JsonValue = None

    @property
    def overrides_payload(self) -> bool:
        """Whether a payload was given at all."""
        return "payload" in self.model_fields_set


class BackfillCommand(StrictMessage):
    """Run the job for past instants: a list of them, or all in ``from`` to ``to``."""

    command: Annotated[Literal["backfill"], AnyCase] = "backfill"
    command_id: CommandId
    instants: tuple[Instant, ...] = Field(default=(), max_length=10_000)
    from_: Instant | None = Field(default=None, alias="from")
    to: Instant | None = None
    rate_per_second: int | None = Field(default=None, ge=1, le=100_000)
    after_attempt: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _instants_or_range(self) -> Self:
        whole = self.from_ is not None and self.to is not None
        if (self.from_ is None) != (self.to is None) or bool(self.instants) == whole:
            raise ValueError("either instants or both from and to are needed")
        return self


class CancelRunsCommand(StrictMessage):
    """Cancel one run, a backfill (``of_command``), or else the job's open runs."""

    command: Annotated[Literal["cancel"], AnyCase] = "cancel"
    command_id: CommandId
    run_id: str | None = None
    of_command: CommandId | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if self.run_id is not None and self.of_command is not None:
            raise ValueError("run_id and of_command exclude each other")
        return self


JobCommand = TriggerCommand | BackfillCommand | CancelRunsCommand

_KINDS = (TriggerCommand, BackfillCommand, CancelRunsCommand)
_JOB_COMMAND: TypeAdapter[JobCommand] = TypeAdapter(
    Annotated[
        Annotated[TriggerCommand, Tag("trigger")]
        | Annotated[BackfillCommand, Tag("backfill")]
        | Annotated[CancelRunsCommand, Tag("cancel")],
        tagged_by("command"),
    ]
)


def decode_command(value: bytes, limits: Limits = LIMITS) -> JobCommand:
    """Read a value of ``job-commands``.

    Raises:
        RequestError: it is not what the contract says; the message names each field.
    """
    if len(value) > limits.definition_bytes_max:
        raise RequestError(
            f"is {len(value)} bytes, above the limit of {limits.definition_bytes_max}"
        )
    read_object(value, limits)
    try:
        return _JOB_COMMAND.validate_json(value)
    except ValidationError as error:
        raise RequestError(join_faults(faults_of(error, _KINDS))) from None
