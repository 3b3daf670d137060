"""What every Kafka client of ours starts from: options, its log, its errors, its end.

An option that a guarantee rests on is written out even where it is the default, and wins over
what the operator passes through. Librdkafka's own log goes to the logger ``scheduler.kafka``;
its lines name brokers and topics, never secrets.
"""

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from scheduler.errors import ClientFatalError, ConfigError

Options = Mapping[str, str | int | float | bool]
"""Further librdkafka options, e.g. for TLS and SASL; may hold secrets, so never logged."""

SOCKET_TIMEOUT_MS = 10_000
"""One request to a broker. The default, 60 s, is six sessions long."""

LOGGER = logging.getLogger("scheduler.kafka")


def client_options(bootstrap_servers: str, extra: Options, own: Options) -> dict[str, Any]:
    """Return the options of one client: the operator's ``extra`` under our ``own``.

    Raises:
        ConfigError: ``extra`` names an option that the guarantees rest on.
    """
    base: dict[str, Any] = {
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,  # a broker that comes back is found within a second
        "log.connection.close": False,  # idle connections are closed by brokers all the time
    }
    passed = {name: value for name, value in extra.items() if name != "bootstrap.servers"}
    taken = sorted(own.keys() & passed.keys())
    if taken:
        raise ConfigError(f"Kafka options {', '.join(taken)}: set by Duewheel itself, remove them")
    return {
        **base,
        **passed,
        **own,
        "bootstrap.servers": bootstrap_servers,
        "enable.metrics.push": False,  # nothing of a client goes to a broker unasked
        "logger": LOGGER,
    }


def error_of(exception: KafkaException) -> KafkaError:
    """Return the error a client's exception carries."""
    error = exception.args[0]
    return error if isinstance(error, KafkaError) else KafkaError(KafkaError._FAIL, str(error))


class ErrorLog:
    """Receives what a client reports beside its calls (``error_cb``).

    Attributes:
        fatal: the first fatal error; the client is beyond repair.
        disturbed: a connection failed or a request timed out since this was last set to False.
    """

    _DISTURBANCES = frozenset(
        {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}
    )

    def __init__(self, client: str) -> None:
        self._client = client
        self.fatal: KafkaError | None = None
        self.disturbed = False

    def __call__(self, error: KafkaError) -> None:
        """Note one report."""
        if error.fatal() and self.fatal is None:
            self.fatal = error
        if error.code() in self._DISTURBANCES:
            self.disturbed = True
        LOGGER.warning("%s: %s: %s", self._client, error.name(), error.str())

    def check(self) -> None:
        """Raise what is fatal.

        Raises:
            ClientFatalError: the client is beyond repair; end the process.
        """
        if self.fatal is not None:
            raise ClientFatalError(self._client, f"{self.fatal.name()}: {self.fatal.str()}")
