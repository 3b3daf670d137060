"""Tables and JSON as a person and a program see them."""

import json

from scheduler.cli.output import as_json, facts, table


def test_a_table_is_aligned_and_never_wrapped() -> None:
    long = "x" * 300
    text = table(["A", "LONGER"], [["wide cell", 1], ["b", long]])
    assert text.splitlines() == ["A           LONGER", "wide cell   1", f"b           {long}"]


def test_a_table_without_rows_is_its_header() -> None:
    assert table(["JOB", "STATE"], []) == "JOB   STATE"


def test_a_cell_stays_on_its_line() -> None:
    assert table(["REASON"], [["one\ntwo\tthree"]]).splitlines()[1:] == ["one two three"]


def test_absent_values_are_a_dash_in_tables_and_left_out_of_facts() -> None:
    assert table(["A", "B"], [[None, ""]]).splitlines()[1] == "-   -"
    assert facts({"A": None, "B": 0}) == "B:   0"


def test_json_keeps_every_character() -> None:
    text = as_json({"job_id": "gün-sonu"})
    assert "gün-sonu" in text
    assert json.loads(text) == {"job_id": "gün-sonu"}
