"""The scheduler's commands, without those that need the executor (see `duewheel.cli`)."""

import typer

from scheduler.cli.apply import apply
from scheduler.cli.change import delete_app, trigger
from scheduler.cli.failures import OneLineErrors
from scheduler.cli.get import describe_app, get_app
from scheduler.cli.next import next_instants
from scheduler.cli.topics import topics_app


def build_app() -> typer.Typer:
    """A fresh root command with everything that talks to topics and schedules."""
    app = typer.Typer(
        name="duewheel",
        help="Duewheel: a distributed job scheduler on Kafka alone.",
        cls=OneLineErrors,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(apply)
    app.add_typer(get_app, name="get")
    app.add_typer(describe_app, name="describe")
    app.add_typer(delete_app, name="delete")
    app.command()(trigger)
    app.command("next")(next_instants)
    app.add_typer(topics_app, name="topics")
    return app
