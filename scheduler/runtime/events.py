"""Log events of a scheduler worker: names are a contract, values are fields, never in names.

Each is listed with its fields in docs/operations.md. Level: info unless said otherwise.
"""

WORKER_STARTED = "worker_started"  # instance, partitions, store_fresh
WORKER_STOPPED = "worker_stopped"  # instance
WORKER_FAILED = "worker_failed"  # error; error, kind
TOPIC_DIFFERS = "topic_differs"  # warning; difference
STORE_MOVED_ASIDE = "store_moved_aside"  # warning; path
STORE_REBUILDS = "store_rebuilds"  # warning; partition, reason
PARTITIONS_ASSIGNED = "partitions_assigned"  # partitions
PARTITIONS_REVOKED = "partitions_revoked"  # partitions, lost
SHARD_LIVE = "shard_live"  # debug; partition, position, took_ms
TAKEOVER_FINISHED = "takeover_finished"  # partitions, took_ms
CURSOR_LOST = "cursor_lost"  # error; partition, starts_from
CURSOR_FROM_BACKUP = "cursor_from_backup"  # warning; partition, position
TRANSACTION_ABORTED = "transaction_aborted"  # warning; reason, fenced, partitions
TRANSACTION_UNCERTAIN = "transaction_uncertain"  # warning; reason, partitions
RECORD_POISONED = "record_poisoned"  # error; partition, log, offset
LOG_LOST = "log_lost"  # error; topic, partition
