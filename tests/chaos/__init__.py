"""Chaos: real processes and a real Kafka under faults from a seed, judged by the checker."""
