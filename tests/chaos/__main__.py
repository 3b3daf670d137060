"""``python -m tests.chaos``: the long form. Exit code 0 when nothing is violated."""

import argparse
import shutil
import sys
from pathlib import Path
from random import Random

from tests.chaos.plan import plan
from tests.chaos.processes import ROOT
from tests.chaos.report import text
from tests.chaos.stage import Config, Scenario, run
from tests.chaos.system import Size


def main() -> int:
    arguments = _arguments()
    worst = 0
    for scenario in arguments.scenario or list(Scenario):
        folder: Path = ROOT / ".duewheel" / "chaos" / f"{scenario}-{arguments.seed}"
        shutil.rmtree(folder, ignore_errors=True)
        faults = plan(
            Random(arguments.seed), arguments.seconds, arguments.workers, arguments.brokers
        )
        config = Config(
            seed=arguments.seed,
            seconds=arguments.seconds,
            scenario=Scenario(scenario),
            faults=faults,
            brokers=arguments.brokers,
            size=Size(workers=arguments.workers, steady=arguments.jobs),
        )
        print(f"chaos {scenario}, seed {arguments.seed}, {len(faults)} faults in "
              f"{arguments.seconds:g} s", flush=True)  # fmt: skip
        report = run(config, folder)
        print(text(report), flush=True)
        worst = max(worst, 0 if report.passed else 1)
    return worst


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=150.0, help="how long faults go on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", action="append", choices=list(Scenario), help="default: all")
    parser.add_argument("--brokers", type=int, default=1, choices=(1, 3))
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=500, help="jobs that fire each second")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
