"""Log events of an executor: names are a contract, values are fields, never in names.

Level: info unless said otherwise.
"""

EXECUTOR_STARTED = "executor_started"  # instance, queue, handlers, max_in_flight
EXECUTOR_DRAINING = "executor_draining"  # in_flight, limit_s
EXECUTOR_STOPPED = "executor_stopped"  # instance, unfinished
EXECUTOR_FAILED = "executor_failed"  # error; error, exit_code
TOPIC_DIFFERS = "topic_differs"  # warning; difference
TOPIC_DENIED = "topic_denied"  # warning; topic, error
PARTITIONS_ASSIGNED = "partitions_assigned"  # partitions
PARTITIONS_GONE = "partitions_gone"  # partitions, cancelled
PARTITION_LIVE = "partition_live"  # debug; partition, position, values, inherited
RUN_REFUSED = "run_refused"  # warning; partition, offset, reason
RUN_DROPPED = "run_dropped"  # debug; run_id, attempt, reason
RUN_POISONED = "run_poisoned"  # error; run_id, reason
STATE_UNREADABLE = "state_unreadable"  # error; partition, offset, reason
TRANSACTION_ABORTED = "transaction_aborted"  # warning; reason, fenced, inputs
TRANSACTION_UNCERTAIN = "transaction_uncertain"  # warning; reason, partitions
LOG_LOST = "log_lost"  # error; topic, partition
STEP_RETRIED = "step_retried"  # warning; error
