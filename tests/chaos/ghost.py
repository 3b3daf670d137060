"""A worker that dies with an open transaction: ``python -m tests.chaos.ghost BOOTSTRAP PREFIX``.

It joins the workers' group, opens a transaction for the partitions it is given, prints how many
(then the word ``pending``) and waits to be killed. With ``--idle`` it opens none.
"""

import argparse
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from scheduler.contract.topics import TopicCatalog, load_catalog

JOINED_S = 60.0
SESSION_MS = 10_000
TRANSACTION_MS = 3_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("prefix")
    parser.add_argument("--idle", action="store_true")
    arguments = parser.parse_args()
    catalog = load_catalog(prefix=arguments.prefix)
    consumer, owned = _join(arguments.bootstrap, catalog)
    producer = None if arguments.idle else _open(arguments.bootstrap, catalog, consumer, owned)
    print(f"{' '.join(str(p.partition) for p in owned)}", flush=True)
    print("pending", flush=True)
    while True:
        consumer.poll(0.1)
        if producer is not None:
            producer.poll(0)


def _join(bootstrap: str, catalog: TopicCatalog) -> tuple[Consumer, list[TopicPartition]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": catalog.scheduler_group(),
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 500,
            "enable.auto.commit": False,
        }
    )
    owned: list[TopicPartition] = []

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        owned.extend(partitions)
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)

    consumer.subscribe([catalog.name("jobs")], on_assign=assigned)
    until_s = time.monotonic() + JOINED_S
    while not owned and time.monotonic() < until_s:
        consumer.poll(0.1)
    return consumer, owned


def _open(
    bootstrap: str, catalog: TopicCatalog, consumer: Consumer, owned: list[TopicPartition]
) -> Producer:
    """A transaction with a run in every partition of ``runs`` and the offsets of all it owns."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": catalog.scheduler_transactional_id("ghost"),
            "transaction.timeout.ms": TRANSACTION_MS,
        }
    )
    committed = consumer.committed(owned, timeout=10)
    producer.init_transactions(10)
    producer.begin_transaction()
    for partition in range(catalog.partitions("runs")):
        producer.produce(catalog.name("runs"), b'{"kind":"ghost"}', b"ghost", partition=partition)
    producer.flush(10)
    producer.send_offsets_to_transaction(
        [TopicPartition(p.topic, p.partition, max(p.offset, 0), p.metadata) for p in committed],
        consumer.consumer_group_metadata(),
        10,
    )
    return producer


if __name__ == "__main__":
    sys.exit(main())
