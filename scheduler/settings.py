"""Settings of the scheduler, from the environment; `KafkaSettings` is shared with the executor.

Every setting is an environment variable, `KAFKA_BOOTSTRAP_SERVERS` or `DUEWHEEL_` and the field's
name in capitals. They stop at `app`, which hands small frozen values down.
"""

import re
import secrets
import socket
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import AliasChoices, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from scheduler.contract.topics import TopicCatalog, load_catalog
from scheduler.errors import ConfigError

INSTANCE_FILE = "instance-id"

BOOTSTRAP_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"
VARIABLE_PREFIX = "DUEWHEEL_"

RESERVED_OPTIONS = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "isolation.level",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "transaction.timeout.ms",
        "transactional.id",
    }
)
"""Client options the guarantees rest on; those that may vary have a setting of their own."""

_QUOTED = re.compile(r'"(\w+)"')

SESSION_MS_MIN = 6_000
"""The broker's default `group.min.session.timeout.ms`."""


class Warm(StrEnum):
    """Whose definitions a scheduler worker keeps in its local store."""

    ALL = "all"
    """Every partition's: a take-over needs no restore."""
    OWNED = "owned"
    """Only those of the partitions it owns: less disk and reading, slower take-over."""


class KafkaSettings(BaseSettings):
    """What every Duewheel process has to know.

    Attributes:
        bootstrap_servers: `host:port` pairs, separated by commas.
        topic_prefix: goes before every topic, group and transactional id.
        topics_file: a topics.yaml other than the built-in one, e.g. with more queues.
        state_dir: local store and instance id; one process each.
        instance_id: names this process in transactional ids and logs, stable over restarts.
        replication_factor: copies of topics it creates; unset: the brokers there are, at most 3.
        kafka_options: further librdkafka options as JSON, e.g. for TLS and SASL.
    """

    model_config = SettingsConfigDict(
        env_prefix=VARIABLE_PREFIX,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,  # an option may be a password
    )

    bootstrap_servers: str = Field(
        default="localhost:9092",
        min_length=1,
        validation_alias=AliasChoices(BOOTSTRAP_VARIABLE, "bootstrap_servers"),
    )
    topic_prefix: str = Field(default="", max_length=100, pattern=r"^[A-Za-z0-9._-]*$")
    topics_file: Path | None = None
    state_dir: Path = Path(".duewheel/state")
    instance_id: str = Field(default="", max_length=100, pattern=r"^[A-Za-z0-9._-]*$")
    replication_factor: int | None = Field(default=None, ge=1, le=16)
    kafka_options: dict[str, str | int | float | bool] = Field(default={}, repr=False)

    @field_validator("kafka_options")
    @classmethod
    def _no_reserved_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(RESERVED_OPTIONS & options.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)}: set by Duewheel itself, remove it here")
        return options

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Return the settings of the environment, with ``overrides`` over them.

        Raises:
            ConfigError: a value is not valid; the message names the variable.
        """
        try:
            return cls(**overrides)
        except ValidationError as error:
            raise ConfigError("; ".join(map(_complaint, error.errors()))) from error
        except SettingsError as error:
            field = _QUOTED.search(str(error))
            variable = _variable((field.group(1),) if field else ())
            # Its cause holds the text that was not JSON, which may hold a password.
            raise ConfigError(f"{variable}: not valid JSON") from None

    def client_options(self) -> dict[str, str | int | float | bool]:
        """Return the librdkafka options that every client starts from; may hold secrets."""
        return {**self.kafka_options, "bootstrap.servers": self.bootstrap_servers}

    def catalog(self) -> TopicCatalog:
        """Return the topics with this prefix.

        Raises:
            ConfigError: topics.yaml is not valid.
        """
        return load_catalog(self.topic_prefix, self.topics_file)

    def instance(self) -> str:
        """Return the configured instance id, else the host's name and an id of the state folder.

        The latter is drawn once and kept in the folder, so a restart takes up the same id and
        two folders on one machine never share one.

        Raises:
            ConfigError: the state folder cannot be written.
        """
        if self.instance_id:
            return self.instance_id
        try:
            return f"{_host()}-{_folder_id(self.state_dir)}"
        except OSError as error:
            raise ConfigError(
                f"state folder {self.state_dir}: {error.strerror}; set {VARIABLE_PREFIX}STATE_DIR"
            ) from error


class MemberSettings(KafkaSettings):
    """What a member of a group with a transactional producer has to know beside.

    Attributes:
        session_timeout_ms: silence after which a process's partitions go to others; what a
            dead one owned waits for so long.
        heartbeat_interval_ms: under a third of the session.
        transaction_timeout_ms: after which the broker ends a dead process's transaction; under
            the session, so that a take-over need not wait for it.
        call_deadline_seconds: a Kafka call that takes longer ends the process.
    """

    session_timeout_ms: int = Field(default=10_000, ge=SESSION_MS_MIN, le=1_800_000)
    heartbeat_interval_ms: int = Field(default=500, ge=100)
    transaction_timeout_ms: int = Field(default=3_000, ge=1_000)
    call_deadline_seconds: int = Field(default=30, ge=5)

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if 3 * self.heartbeat_interval_ms > self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms {self.heartbeat_interval_ms} must be at most a third of "
                f"session_timeout_ms {self.session_timeout_ms}"
            )
        if self.transaction_timeout_ms >= self.session_timeout_ms:
            raise ValueError(
                f"transaction_timeout_ms {self.transaction_timeout_ms} must be below "
                f"session_timeout_ms {self.session_timeout_ms}"
            )
        return self


class SchedulerSettings(MemberSettings):
    """Settings of a scheduler worker.

    Attributes:
        warm: `all` or `owned`; see `Warm`.
        group_instance_id: static membership, for hosts with stable names whose restarts are
            shorter than the session; unset: dynamic, which notices a clean stop at once.
        transaction_interval_ms: from the start of one transaction to the next.
        transaction_runs_max: run commands in one transaction.
        catchup_grace_seconds: lateness beyond which a worker catches up beside its live work.
        catchup_limit_seconds: how far back a worker looks when its cursor is lost everywhere.
        cursor_backup_seconds: how often each cursor is copied to `cursors`.
        flush_interval_seconds: how often the local store is made durable.
        allow_older_tzdata: start though the cursor was written with newer tzdata (a rollback).
    """

    warm: Warm = Warm.ALL
    group_instance_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+$")
    transaction_interval_ms: int = Field(default=20, ge=1, le=1_000)
    transaction_runs_max: int = Field(default=4_000, ge=1, le=100_000)
    catchup_grace_seconds: int = Field(default=60, ge=1, le=86_400)
    catchup_limit_seconds: int = Field(default=86_400, ge=0)
    cursor_backup_seconds: int = Field(default=60, ge=1)
    flush_interval_seconds: int = Field(default=60, ge=1)
    allow_older_tzdata: bool = False


def _complaint(fault: ErrorDetails) -> str:
    return f"{_variable(fault['loc'])}: {fault['msg'].removeprefix('Value error, ')}"


def _variable(location: tuple[int | str, ...]) -> str:
    if not location:
        return "settings"
    first = str(location[0])
    if first in ("bootstrap_servers", BOOTSTRAP_VARIABLE):
        return BOOTSTRAP_VARIABLE
    return f"{VARIABLE_PREFIX}{first.upper()}"


def _host() -> str:
    name = socket.gethostname().split(".")[0]
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name)[:60]


def _folder_id(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / INSTANCE_FILE
    try:
        with place.open("x", encoding="ascii") as new:
            new.write(secrets.token_hex(3))
    except FileExistsError:
        pass
    drawn = place.read_text(encoding="ascii").strip()
    if not drawn:
        raise ConfigError(f"{place} is empty: remove it and start again")
    return drawn
