"""The scheduler's own client settings, for a bare client of a bench."""

from typing import Any

from scheduler.kafka.transaction import ProducerConfig, _options


def producer_settings(bootstrap: str, transactional_id: str) -> dict[str, Any]:
    """What the scheduler's transactional producer is made with."""
    return _options(ProducerConfig(bootstrap, transactional_id))
