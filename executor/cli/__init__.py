"""The ``duewheel executor`` command."""
