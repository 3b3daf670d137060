"""Settings: from the environment, checked across fields, secrets never shown."""

import stat
from pathlib import Path

import pytest

from scheduler.errors import ConfigError
from scheduler.settings import INSTANCE_FILE, KafkaSettings, SchedulerSettings, Warm


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)


def test_defaults_are_those_the_design_was_measured_with() -> None:
    settings = SchedulerSettings.load()
    assert settings.bootstrap_servers == "localhost:9092"
    assert settings.warm is Warm.ALL
    assert settings.group_instance_id is None
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (10_000, 500)
    assert (settings.transaction_timeout_ms, settings.transaction_interval_ms) == (3_000, 20)


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "a:1,b:2")
    monkeypatch.setenv("DUEWHEEL_TOPIC_PREFIX", "staging.")
    monkeypatch.setenv("DUEWHEEL_WARM", "owned")
    monkeypatch.setenv("DUEWHEEL_KAFKA_OPTIONS", '{"security.protocol": "SASL_SSL"}')
    settings = SchedulerSettings.load()
    assert settings.client_options() == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
    }
    assert settings.catalog().name("jobs") == "staging.jobs"
    assert settings.warm is Warm.OWNED


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("DUEWHEEL_TRANSACTION_INTERVAL_MS", "soon", "valid integer"),
        ("DUEWHEEL_SESSION_TIMEOUT_MS", "5000", "greater than or equal to 6000"),
        ("DUEWHEEL_TOPIC_PREFIX", "a b", "pattern"),
        ("DUEWHEEL_WARM", "hot", "'all' or 'owned'"),
        ("DUEWHEEL_KAFKA_OPTIONS", '{"group.id": "mine"}', "group.id: set by Duewheel itself"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, complaint: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refusal:
        SchedulerSettings.load()
    assert str(refusal.value).startswith(f"{variable}: ")
    assert complaint in str(refusal.value)


def test_options_that_are_not_json_are_refused_with_their_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUEWHEEL_KAFKA_OPTIONS", "sasl.password=hunter2")
    with pytest.raises(ConfigError, match="DUEWHEEL_KAFKA_OPTIONS") as refusal:
        KafkaSettings.load()
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"heartbeat_interval_ms": 4_000}, "at most a third of session_timeout_ms 10000"),
        ({"transaction_timeout_ms": 10_000}, "must be below session_timeout_ms 10000"),
    ],
)
def test_times_that_do_not_fit_each_other_are_refused(
    values: dict[str, int], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        SchedulerSettings.load(**values)


def test_a_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUEWHEEL_KAFKA_OPTIONS", '{"sasl.password": "hunter2", "group.id": "x"}')
    with pytest.raises(ConfigError) as refusal:
        KafkaSettings.load()
    assert "hunter2" not in str(refusal.value)
    monkeypatch.delenv("DUEWHEEL_KAFKA_OPTIONS")
    shown = repr(KafkaSettings.load(kafka_options={"sasl.password": "hunter2"}))
    assert "hunter2" not in shown


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="DUEWHEEL_TRANSACTION_INTERVALL_MS"):
        SchedulerSettings.load(transaction_intervall_ms=3)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        KafkaSettings.load().topic_prefix = "x"  # type: ignore[misc]


def test_an_instance_keeps_its_id_over_restarts(tmp_path: Path) -> None:
    first = KafkaSettings.load(state_dir=tmp_path / "a").instance()
    assert KafkaSettings.load(state_dir=tmp_path / "a").instance() == first


def test_two_state_folders_on_one_machine_have_different_ids(tmp_path: Path) -> None:
    ids = {KafkaSettings.load(state_dir=tmp_path / name).instance() for name in "abcdef"}
    assert len(ids) == 6


def test_a_configured_instance_id_is_taken(tmp_path: Path) -> None:
    assert KafkaSettings.load(instance_id="worker-1", state_dir=tmp_path).instance() == "worker-1"
    assert not (tmp_path / INSTANCE_FILE).exists()


def test_an_unusable_state_folder_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch(stat.S_IRUSR)
    with pytest.raises(ConfigError, match="DUEWHEEL_STATE_DIR"):
        KafkaSettings.load(state_dir=in_the_way).instance()
