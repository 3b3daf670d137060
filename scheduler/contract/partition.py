"""Which partition a key belongs to: the Java client's default, computed by us.

librdkafka's own default (CRC32) agrees with it only by chance, so every record is produced to
an explicit partition. The counts of Duewheel's topics divide each other, and so the partitions
nest: all records of a job meet in one partition on every topic.

Source: ``BuiltInPartitioner.partitionForKey`` of the Java client (murmur2, sign bit cleared).
"""

from confluent_kafka import murmur2


def partition_of(key: bytes, count: int) -> int:
    """Partition (0 to ``count`` - 1) of a record with this key.

    >>> partition_of(b"daily-report", 256) % 64 == partition_of(b"daily-report", 64)
    True
    """
    return murmur2(key, count)
