"""The worker: its loop, taking partitions over, the only clock."""
