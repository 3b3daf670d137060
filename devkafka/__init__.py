"""A throw-away Apache Kafka for development and tests.

Not part of the running service: nothing in ``scheduler`` or ``executor`` needs it, and production
points ``KAFKA_BOOTSTRAP_SERVERS`` at a cluster of its own.

- `devkafka.jars`: fetches Kafka's own jars through Maven, once.
- `devkafka.broker`: one broker process: start, stop, kill, restart on the same port and data.
- `devkafka.cluster`: one broker or three, formatted and started together.
- `devkafka.provide`: whichever Kafka is at hand: configured, Docker, or the jars.
- `devkafka.console`: Kafka's own console producer and consumer.
"""
