"""Client settings of the benches; those of the scheduler wherever it has them."""


def producer_settings(bootstrap: str, transactional_id: str) -> dict[str, object]:
    """Settings of a transactional producer."""
    return {
        "bootstrap.servers": bootstrap,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 10_000,
        "retry.backoff.ms": 2,
        "retry.backoff.max.ms": 20,
        "linger.ms": 5,
        "compression.type": "lz4",
        "batch.num.messages": 10_000,
        "queue.buffering.max.messages": 100_000,
    }
