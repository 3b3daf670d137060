"""The command line of the scheduler's half; `duewheel.cli` joins it with the executor's."""
