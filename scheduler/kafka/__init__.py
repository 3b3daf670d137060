"""The edge to Kafka: ownership, reading, transactions, positions, topics."""
