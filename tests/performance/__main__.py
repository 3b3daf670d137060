"""Run benches and print their figures: ``python -m tests.performance [--quick] [NAME ...]``."""

import argparse
import sys

from tests.performance import baseline, store_rate
from tests.performance.figure import Figure, machine, table
from tests.performance.site import Bench, Site

BENCHES: dict[str, Bench] = {
    "store": store_rate.run,
    "bare-rate": baseline.run,
    "bare-lateness": baseline.run_lateness,
}


def main(arguments: list[str]) -> int:
    """Run the named benches, all without names; 1 when ``--strict`` and a goal was missed."""
    options = _options(arguments)
    print(machine(), flush=True)
    site = Site(scale=0.1 if options.quick else 1.0)
    figures: list[Figure] = []
    try:
        for name in options.names or BENCHES:
            print(f"... {name}", file=sys.stderr, flush=True)
            figures += BENCHES[name](site)
    finally:
        site.close()
        if figures:
            print(table(figures))
    missed = any(figure.met is False for figure in figures)
    return 1 if options.strict and missed else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--strict", action="store_true", help="fail when a goal is missed")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(BENCHES))
    if unknown:
        parser.error(f"no bench called {unknown[0]!r}; there are {', '.join(BENCHES)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
