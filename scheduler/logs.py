"""Logs of a process: JSON lines for machines, colours for a terminal."""

import faulthandler
import logging
import sys

import structlog


def configure_logs(level: int = logging.INFO) -> None:
    """Write events at ``level`` and above to standard output."""
    faulthandler.enable()  # a crash in a native library says where
    terminal = sys.stdout.isatty()
    last: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(message)s")
