"""The pure core: no clock, no I/O, no Kafka. It decides; the edges do."""
