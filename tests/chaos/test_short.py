"""The short form, in CI: one fault of each kind that matters, everything exactly once."""

from pathlib import Path

import pytest

from devkafka.jars import java
from tests.chaos.plan import SHORT
from tests.chaos.report import text
from tests.chaos.stage import Config, Scenario, run


@pytest.mark.integration
@pytest.mark.skipif(java() is None, reason="brokers that are killed are run from Kafka's jars")
def test_every_run_once_while_things_break(tmp_path: Path) -> None:
    config = Config(
        seed=1,
        seconds=33.0,
        scenario=Scenario.CHURN,
        faults=SHORT,
        settle_s=75.0,
    )
    report = run(config, tmp_path)
    assert report.passed, text(report)
    assert len(report.history.runs) > config.size.steady * config.seconds
    assert len(report.history.faults) == len(SHORT)
