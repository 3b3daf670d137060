"""The table is whole: every open phase can end, nothing leads to nowhere."""

from pathlib import Path

from executor.core.table import OPEN_PHASES, TABLE, Event, Phase, Status
from scheduler.contract.history import RunStatus


def test_every_open_phase_can_be_cancelled() -> None:
    assert {phase for phase, event in TABLE if event is Event.CANCEL} == OPEN_PHASES


def test_final_status_means_finished() -> None:
    final = {Status.SUCCEEDED, Status.DEAD, Status.CANCELLED}
    for change in TABLE.values():
        assert (change.phase is Phase.FINISHED) == (change.status in final)


def test_every_phase_is_reached_and_left() -> None:
    assert {change.phase for change in TABLE.values()} | {Phase.UNKNOWN} == set(Phase)
    assert {phase for phase, _ in TABLE} == set(Phase)


def test_statuses_are_the_contract_s() -> None:
    assert {status.value for status in Status} <= {status.value for status in RunStatus}


def test_the_documents_show_this_table() -> None:
    page = Path(__file__).parents[4].joinpath("docs/executor.md").read_text()
    section = page.split("| phase | event |")[1].split("\n\n")[0]
    shown = [tuple(cell.strip() for cell in line.strip("|").split("|"))
             for line in section.splitlines()[2:]]  # fmt: skip
    assert shown == [(*key, change.phase, change.status) for key, change in TABLE.items()]
