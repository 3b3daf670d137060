"""A module of handlers."""

from posixpath import join

__all__ = ["greet", "join"]


def greet(ctx: object) -> None:
    """Public and its own."""


def _hidden(ctx: object) -> None:
    """Not for topics."""
