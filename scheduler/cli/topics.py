"""``duewheel topics plan | apply | check``: the cluster's topics against topics.yaml."""

import dataclasses
from collections.abc import Sequence

import typer

from scheduler.cli.output import OUTPUT_OPTION, OutputFormat, as_json, table
from scheduler.contract.topics import TopicCatalog
from scheduler.kafka import admin
from scheduler.kafka.admin import KafkaAdmin
from scheduler.kafka.topic_difference import TopicDifference
from scheduler.settings import KafkaSettings

topics_app = typer.Typer(
    help="Plan, create, mend and check the topics of topics.yaml.", no_args_is_help=True
)

_HEADER = ("TOPIC", "AT STAKE", "SETTING", "FOUND", "WANTED", "REMEDY")


@topics_app.command()
def plan(output: OutputFormat = OUTPUT_OPTION) -> None:
    """Show what is missing or different; change nothing."""
    catalog, cluster = _open()
    _show(admin.plan(catalog, cluster), output, "all topics are as topics.yaml says")


@topics_app.command()
def apply(output: OutputFormat = OUTPUT_OPTION) -> None:
    """Create what is missing and mend settings; never delete, never change a partition count."""
    catalog, cluster = _open()
    _show(admin.apply(catalog, cluster), output, "nothing to do", done=True)


@topics_app.command()
def check(output: OutputFormat = OUTPUT_OPTION) -> None:
    """Fail (exit code 3) where services would refuse to start; show what is merely advised."""
    catalog, cluster = _open()
    _show(admin.check(catalog, cluster), output, "all topics are as topics.yaml says")


def _open() -> tuple[TopicCatalog, KafkaAdmin]:
    settings = KafkaSettings.load()
    cluster = KafkaAdmin(settings.client_options(), settings.replication_factor)
    return settings.catalog(), cluster


def _show(
    differences: Sequence[TopicDifference],
    output: OutputFormat,
    none: str,
    *,
    done: bool = False,
) -> None:
    if output is OutputFormat.JSON:
        typer.echo(as_json([dataclasses.asdict(each) for each in differences]))
    elif not differences:
        typer.echo(none)
    else:
        typer.echo(table(_HEADER, [_row(each, done=done) for each in differences]))


def _row(each: TopicDifference, *, done: bool) -> tuple[str, ...]:
    remedy = "done" if done else each.remedy
    return (each.topic, each.severity, each.setting, each.found, each.wanted, remedy)
