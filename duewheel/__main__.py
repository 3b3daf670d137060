"""``python -m duewheel``: the same as the ``duewheel`` command."""

from duewheel.cli import app

if __name__ == "__main__":
    app()
