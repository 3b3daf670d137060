"""The dialect: what is accepted, its one stored form, what is refused and how fast."""

import time

import pytest

from scheduler.core.cron import CronError, CronFault, normalise, parse


def fault(expression: str, job_id: str | None = None) -> CronFault:
    with pytest.raises(CronError) as refusal:
        normalise(expression, job_id)
    assert refusal.value.path == "schedule"
    return refusal.value.kind


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("  5\t04  * * * ", "5 4 * * *"),
        ("@Hourly", "0 * * * *"),
        ("@weekly ", "0 0 * * 0"),
        ("0 0 ? * mon-FRI", "0 0 * * 1-5"),
        ("0 0 1 dec,jan ?", "0 0 1 12,1 *"),
        ("0 5-5 * * *", "0 5 * * *"),
        ("*/1 0-23/1 * * *", "* 0-23 * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 5-7"),
        ("0 0 * * FRIL,3l", "0 0 * * L5,L3"),
        ("0 0 * * l5", "0 0 * * L5"),
        ("0 0 * * fri#2", "0 0 * * 5#2"),
        ("0 0 w15 * *", "0 0 15W * *"),
        ("0 0 WL * *", "0 0 LW * *"),
        ("0 0 1,L * *", "0 0 1,L * *"),
        ("59/15 * * * *", "59 * * * *"),
        ("0 0 0 1 1 * 2030-2040/5", "0 0 0 1 1 * 2030-2040/5"),
    ],
)
def test_the_stored_form(written: str, stored: str) -> None:
    assert normalise(written).expression == stored
    assert normalise(stored).expression == stored


@pytest.mark.parametrize(
    ("expression", "wildcard"),
    [
        ("*/15 2 * * *", True),
        ("0 */2 * * *", True),
        ("0 0 * * *", False),
        ("0 0-23 * * *", False),
        ("* 0 0 * * *", True),
        ("0 0 0 * * *", False),
        ("0 0 0 * * * *", False),
        ("@hourly", True),
        ("@daily", False),
    ],
)
def test_a_star_in_the_clock_fields_is_a_wildcard(expression: str, wildcard: bool) -> None:
    assert normalise(expression).wildcard is wildcard


def test_h_is_chosen_once_for_a_job_and_stored_plain() -> None:
    stored = {normalise("H H H H H", f"job-{n}").expression for n in range(300)}
    assert len(stored) > 290
    for text in stored:
        minute, hour, day, month, weekday = map(int, text.split())
        assert 0 <= minute <= 59
        assert 0 <= hour <= 23
        assert 1 <= day <= 28
        assert 1 <= month <= 12
        assert 0 <= weekday <= 6
    assert normalise("H H * * *", "a") == normalise("H H * * *", "a")


def test_the_choices_of_h_do_not_hang_together() -> None:
    pairs = {normalise("H H * * *", f"job-{n}").expression for n in range(3_000)}
    assert len(pairs) > 1_000  # 1,440 pairs; were both taken modulo, 120 would be all


def test_h_stays_within_its_bounds_and_steps_through_them() -> None:
    for n in range(200):
        minute = int(normalise("H(10-12) * * * *", f"job-{n}").expression.split()[0])
        assert 10 <= minute <= 12
        stepped = parse(normalise("H(0-29)/10 * * * *", f"job-{n}").expression).minutes
        values = [v for v in range(60) if stepped >> v & 1]
        assert values == [values[0], values[0] + 10, values[0] + 20]
        assert values[0] < 10


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("H(50-70) * * * *", CronFault.RANGE),
        ("H(9-3) * * * *", CronFault.RANGE),
        ("H/61 * * * *", CronFault.STEP),
        ("H/0 * * * *", CronFault.STEP),
        ("H-5 * * * *", CronFault.SYNTAX),
        ("0 0 0 1 1 * H", CronFault.POLICY),
        ("r * * * *", CronFault.POLICY),
        ("R(1-5)/2 * * * *", CronFault.POLICY),
    ],
)
def test_faults_of_h_and_r(expression: str, kind: CronFault) -> None:
    assert fault(expression, "job") is kind


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("", CronFault.FIELDS),
        ("* * * *", CronFault.FIELDS),
        ("* * * * * * * *", CronFault.FIELDS),
        ("0 0 * * *\n", CronFault.FIELDS),
        ("@", CronFault.ALIAS),
        ("@daily 5", CronFault.ALIAS),
        ("0 0 29W * *", CronFault.POLICY),
        ("0 0 31W * *", CronFault.POLICY),
        ("0 0 LW,1 * *", CronFault.POLICY),
        ("0 0 0W * *", CronFault.RANGE),
        ("0 0 * * FRI-MON/2", CronFault.POLICY),
        ("0 0 * * 1-3#2", CronFault.SPECIAL),
        ("0 0 * * 1#0", CronFault.SPECIAL),
        ("0 0 * * L", CronFault.SPECIAL),
        ("0 0 L/2 * *", CronFault.SYNTAX),
        ("0 0 0 1 1 * 2030-2020", CronFault.RANGE),
        ("0 0 0 1 1 * 2026/0", CronFault.STEP),
        ("0 0 0 29 2 * 2097-2099", CronFault.IMPOSSIBLE),
        ("0 0 */31 2 1#5", CronFault.IMPOSSIBLE),
    ],
)
def test_faults(expression: str, kind: CronFault) -> None:
    assert fault(expression) is kind


HOSTILE = {
    "a list of 10,000": (",".join(str(n % 60) for n in range(10_000)) + " * * * *", "length"),
    "10,000 ranges": (",".join(["0-59"] * 10_000) + " * * * *", "length"),
    "a megabyte": ("x" * 1_000_000, "length"),
    "a megabyte of blanks": (" " * 1_000_000, "length"),
    "never": ("0 0 30 2 *", "impossible"),
    "never, every second": ("* * * 31 2,4,6,9,11 *", "impossible"),
    "never, by years": ("0 0 0 29 2 * 1970-2099/4,2001-2099/2", "impossible"),
    "NUL": ("0 0 * * *\0", "charset"),
    "right to left": ("0 0 * * \u202e*", "charset"),
    "full-width digits": ("\uff10 0 * * *", "charset"),
    "lone surrogate": ("0 0 * * \ud800", "charset"),
    "long number": ("9" * 200 + " * * * *", "range"),
    "long step": ("*/" + "9" * 200 + " * * * *", None),
    "hashes": ("0 0 * * " + "#" * 240, "fields"),
    "a hash and more": ("0 0 * * 1" + "#" * 240, "special"),
    "dashes": ("-" * 240 + " * * * *", "syntax"),
    "slashes": ("1" + "/" * 240 + " * * * *", "step"),
    "W list": ("0 0 " + "1W," * 80 + " * *", "policy"),
    "parentheses": ("H" + "(" * 240 + " * * * *", "syntax"),
    "many years": ("0 0 0 29 2 1#5 " + ",".join(str(y) for y in range(1970, 2010)), None),
    "many fields": ("1 " * 128, "fields"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_expressions_cost_less_than_5_ms(name: str) -> None:
    expression, kind = HOSTILE[name]
    costs = []
    for _ in range(5):  # the least of five: the machine may be busy
        begin = time.perf_counter()
        refusal = refusal_of(expression)
        costs.append(time.perf_counter() - begin)
        assert (refusal.kind.value if refusal else None) == kind
        assert refusal is None or len(refusal.reason) < 300
    assert min(costs) < 0.005


def refusal_of(expression: str) -> CronError | None:
    try:
        normalise(expression, "job")
    except CronError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 0 */2 * 1", "must both match"),
        ("0 0 13 * 5", "one of them is enough"),
        ("0 0 15W * MON", "croniter loses instants"),
        ("0 0 * * 4/1", "counted up to Saturday"),
        ("0 0 5-5 * *", "range of one value"),
        ("0 22-2 * * *", "the range wraps"),
        ("*/45 * * * *", "begins again at 0"),
        ("0 0 0 * * 1-5", "Quartz counts from 1"),
    ],
)
def test_warns_where_engines_differ(expression: str, words: str) -> None:
    assert any(words in warning for warning in normalise(expression).warnings)


@pytest.mark.parametrize("expression", ["0 9 * * 1-5", "*/15 * * * *", "@daily", "0 0 L * *"])
def test_says_nothing_where_they_agree(expression: str) -> None:
    assert normalise(expression).warnings == ()
