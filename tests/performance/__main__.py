"""Run benches and print their figures: ``python -m tests.performance [--quick] [NAME ...]``."""

import argparse
import sys
import traceback

from tests.performance import (
    baseline,
    dispatch_rate,
    restart,
    scheduler_lateness,
    store_rate,
)
from tests.performance.figure import Figure, machine, table
from tests.performance.site import Bench, Site

BENCHES: dict[str, Bench] = {
    "store": store_rate.run,
    "dispatch": dispatch_rate.run,
    "restart": restart.run,
    "lateness": scheduler_lateness.run,
}
"""What runs when no names are given."""

PARTS: dict[str, Bench] = {
    "bare-rate": baseline.run,
    "bare-lateness": baseline.run_lateness,
}
"""References that `dispatch` and `lateness` measure anyway, here by themselves."""


def main(arguments: list[str]) -> int:
    """Run the named benches; 1 when one failed, or with ``--strict`` when a goal was missed."""
    options = _options(arguments)
    print(machine(), flush=True)
    site = Site(scale=0.1 if options.quick else 1.0)
    figures: list[Figure] = []
    failed = False
    try:
        for name in options.names or BENCHES:
            print(f"... {name}", file=sys.stderr, flush=True)
            try:
                figures += {**BENCHES, **PARTS}[name](site)
            except Exception:  # noqa: BLE001  one bench that fails must not cost the others
                traceback.print_exc()
                failed = True
    finally:
        site.close()
    print(table(figures))
    missed = any(figure.met is False for figure in figures)
    return 1 if failed or (options.strict and missed) else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    names = [*BENCHES, *PARTS]
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--strict", action="store_true", help="fail when a goal is missed")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"no bench called {unknown[0]!r}; there are {', '.join(names)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
