"""The ``duewheel`` command: the one place that knows the scheduler and the executor both."""
