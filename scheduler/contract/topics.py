"""The topics of the contract, loaded from ``topics.yaml`` and named with the prefix in force.

`TopicCatalog` is the only place that spells a topic, a consumer group or a transactional id.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scheduler.errors import ConfigError

DEFAULT_QUEUE = "default"

_HERE = Path(__file__)
_INSTALLED = _HERE.with_name("topics.yaml")
_CHECKOUT = _HERE.parents[2] / "topics.yaml"

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NAME_CHARS_MAX = 249
"""Kafka's limit for a topic's name."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic as it has to be.

    Attributes:
        base: name in ``topics.yaml``, e.g. ``runs``.
        name: full name in the cluster, with prefix and queue.
        key: what records are keyed by, for people.
        partitions: number of partitions; never changes.
        required: settings the guarantees rest on: words equal, numbers at least as large.
        advised: settings for size and speed.
        writers, readers: who does, for people and for access lists.
        purpose: one sentence.
    """

    base: str
    name: str
    key: str
    partitions: int
    required: Mapping[str, str]
    advised: Mapping[str, str]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    purpose: str
    per_queue: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """Every setting the topic is created with."""
        return {**self.advised, **self.required}


@dataclass(frozen=True, slots=True)
class TopicCatalog:
    """Every topic, group and transactional id of one Duewheel in a cluster.

    Attributes:
        prefix: goes before every name; empty for none.
        queues: the declared queues, ``default`` first.
    """

    prefix: str
    queues: tuple[str, ...]
    _specs: Mapping[tuple[str, str], TopicSpec]

    def __iter__(self) -> Iterator[TopicSpec]:
        """Every topic, in the order of ``topics.yaml``, queues after one another."""
        return iter(self._specs.values())

    def spec(self, base: str, queue: str = DEFAULT_QUEUE) -> TopicSpec:
        """Return the topic called ``base`` in ``topics.yaml``.

        Args:
            base: e.g. ``jobs``.
            queue: matters for the topics each queue has for itself.

        Raises:
            ConfigError: there is no such topic, or the queue is not declared.
        """
        found = self._specs.get((base, queue)) or self._specs.get((base, DEFAULT_QUEUE))
        if found is None:
            raise ConfigError(f"topics.yaml has no topic {base!r}")
        if queue not in self.queues:
            raise ConfigError(f"queue {queue!r} is not declared in topics.yaml; add it to `queues`")
        return found

    def name(self, base: str, queue: str = DEFAULT_QUEUE) -> str:
        """Return the full name of a topic; see `spec`."""
        return self.spec(base, queue).name

    def partitions(self, base: str, queue: str = DEFAULT_QUEUE) -> int:
        """Return the partition count of a topic; see `spec`."""
        return self.spec(base, queue).partitions

    def owns(self, topic: str) -> bool:
        """Whether ``topic`` is one of Duewheel's own, which no target may write to."""
        return any(spec.name == topic for spec in self)

    def scheduler_group(self) -> str:
        """Return the consumer group of the scheduler workers."""
        return f"{self.prefix}scheduler"

    def executor_group(self, queue: str = DEFAULT_QUEUE) -> str:
        """Return the consumer group of a queue's executors."""
        return f"{self.prefix}executor{_queue_suffix(queue)}"

    def scheduler_transactional_id(self, instance: str) -> str:
        """Return the transactional id of the scheduler worker called ``instance``."""
        return f"{self.prefix}scheduler-{instance}"

    def executor_transactional_id(self, instance: str) -> str:
        """Return the transactional id of the executor called ``instance``."""
        return f"{self.prefix}executor-{instance}"

    def with_partitions(self, counts: Mapping[str, int]) -> "TopicCatalog":
        """Return a catalog with other partition counts, by base name; for tests and benches.

        Raises:
            ConfigError: a name is unknown, or the counts do not divide each other.
        """
        for base in counts:
            self.spec(base)
        specs = {
            place: dataclasses.replace(spec, partitions=counts.get(spec.base, spec.partitions))
            for place, spec in self._specs.items()
        }
        _check_nesting(specs)
        return dataclasses.replace(self, _specs=specs)


def load_catalog(prefix: str = "", path: Path | None = None) -> TopicCatalog:
    """Return the catalog of ``topics.yaml`` with ``prefix`` before every name.

    Args:
        prefix: letters, digits, dots, dashes and underscores, e.g. ``staging.``.
        path: another file; ``None`` for the one that comes with Duewheel.

    Raises:
        ConfigError: the file or the prefix is not valid; says where.
    """
    source = path or (_INSTALLED if _INSTALLED.is_file() else _CHECKOUT)
    document = _read(source)
    queues = (DEFAULT_QUEUE, *document.queues)
    specs: dict[tuple[str, str], TopicSpec] = {}
    for queue in queues:
        for entry in document.topics:
            if (entry.name, queue) in specs:
                raise ConfigError(f"{source}: topic {entry.name!r} stands there twice")
            if queue == DEFAULT_QUEUE or entry.per_queue:
                specs[entry.name, queue] = _spec(entry, document.defaults, prefix, queue)
    _check_names(specs)
    _check_nesting(specs)
    return TopicCatalog(prefix, queues, specs)


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    required: dict[str, str | int | float] = {}
    advised: dict[str, str | int | float] = {}


class _Entry(_Settings):
    name: str
    key: str
    partitions: int = Field(ge=1)
    per_queue: bool = False
    writers: list[str]
    readers: list[str]
    purpose: str


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int = Field(ge=1, le=1)
    defaults: _Settings = _Settings()
    topics: list[_Entry]
    queues: list[str] = []


def _read(path: Path) -> _Document:
    try:
        return _Document.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {where}: {first['msg']}") from error


def _spec(entry: _Entry, defaults: _Settings, prefix: str, queue: str) -> TopicSpec:
    return TopicSpec(
        base=entry.name,
        name=f"{prefix}{entry.name}{_queue_suffix(queue)}",
        key=entry.key,
        partitions=entry.partitions,
        required=_words({**defaults.required, **entry.required}),
        advised=_words({**defaults.advised, **entry.advised}),
        writers=tuple(entry.writers),
        readers=tuple(entry.readers),
        purpose=entry.purpose,
        per_queue=entry.per_queue,
    )


def _words(settings: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def _queue_suffix(queue: str) -> str:
    return "" if queue == DEFAULT_QUEUE else f".{queue}"


def _check_names(specs: Mapping[tuple[str, str], TopicSpec]) -> None:
    seen: set[str] = set()
    for spec in specs.values():
        if not _NAME.fullmatch(spec.name) or len(spec.name) > _NAME_CHARS_MAX:
            raise ConfigError(
                f"{spec.name!r} cannot be a topic: letters, digits, '.', '_' and '-', "
                f"at most {_NAME_CHARS_MAX}; change the prefix or the queue"
            )
        if spec.name in seen:
            raise ConfigError(f"topics.yaml names the topic {spec.name!r} twice")
        seen.add(spec.name)


def _check_nesting(specs: Mapping[tuple[str, str], TopicSpec]) -> None:
    counts = sorted({spec.partitions for spec in specs.values()})
    for smaller, larger in itertools.pairwise(counts):
        if larger % smaller:
            raise ConfigError(
                f"partition counts must divide each other, {smaller} does not divide {larger}: "
                "a job's runs would be spread over several owners"
            )
