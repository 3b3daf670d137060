"""``duewheel executor``: one executor process in the foreground."""

from typing import Annotated

import typer

from executor.app import run_executor
from executor.settings import ExecutorSettings


def executor(
    queue: Annotated[str | None, typer.Option(help="Whose runs to execute.")] = None,
    handlers: Annotated[
        str | None,
        typer.Option(help="Modules whose functions may be called, separated by commas."),
    ] = None,
    max_in_flight: Annotated[
        int | None, typer.Option(help="Attempts under way at most.", min=1)
    ] = None,
) -> None:
    """Claim runs, have them done, record what came of it. Stops cleanly on SIGTERM."""
    given = {"queue": queue, "handlers": handlers, "max_in_flight": max_in_flight}
    chosen = {name: value for name, value in given.items() if value is not None}
    raise typer.Exit(run_executor(ExecutorSettings.load(**chosen)))
