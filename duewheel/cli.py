"""The ``duewheel`` command: every command of the scheduler's half, and those that start processes.

Console script of the distribution. Errors that are expected end it with one line and the exit
codes of docs/operations.md.
"""

from pathlib import Path
from typing import Annotated

import typer

from duewheel.up import Up
from executor.cli.executor import executor
from scheduler.app import run_scheduler
from scheduler.cli.main import build_app
from scheduler.settings import SchedulerSettings

app = build_app()
app.command()(executor)


@app.command()
def scheduler() -> None:
    """Run a scheduler worker in the foreground. Stops cleanly on SIGTERM."""
    raise typer.Exit(run_scheduler(SchedulerSettings.load()))


@app.command()
def up(
    examples: Annotated[bool, typer.Option(help="Apply the example jobs.")] = True,
) -> None:
    """Run everything on this machine: Kafka if need be, topics, scheduler and executor.

    Prints runs as they happen until Ctrl-C, which stops all that was started.
    """
    Up(Path.cwd(), examples=examples, say=typer.echo).run()
