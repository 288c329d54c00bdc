"""Settings: every wrong key or type is named, with what is allowed."""

from pathlib import Path

import pytest

from clusterscape.errors import ConfigError
from clusterscape.settings import Settings, read_settings
from clusterscape.settings.reading import section_at
from clusterscape.settings.renamed import RENAMED


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "clusterscape.toml"
    path.write_text(text)
    return path


def test_defaults_are_loopback_and_embedded_when_nothing_is_given() -> None:
    settings = read_settings(environ={})
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8321)
    assert (settings.storage.metrics, settings.storage.records) == ("embedded", "sqlite")


def test_later_sources_win_when_several_set_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, '[server]\nport = 1\nhost = "127.0.0.2"\n')
    settings = read_settings(
        path, environ={"CLUSTERSCAPE_SERVER__PORT": "2", "HOME": "/"}, overrides={"server": {"port": 3}}
    )
    assert settings.server.port == 3
    assert settings.server.host == "127.0.0.2"


def test_environment_reaches_nested_lists_when_comma_separated() -> None:
    settings = read_settings(environ={"CLUSTERSCAPE_COLLECT__DCGM__TARGETS": "a:9400,b:9400"})
    assert settings.collect.dcgm.targets == ("a:9400", "b:9400")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[server]\nprt = 1", "unknown setting `server.prt`", "Did you mean `port`?"),
        ("[serve]\nport = 1", "unknown setting `serve`", "Did you mean `server`?"),
        ('[server]\nport = "x"', "setting `server.port` = 'x'", "Default: 8321"),
        ('[collect.slurm]\nmode = "ssh"', "'off', 'cli' or 'rest'", "slurmrestd"),
        ('[storage]\nmetrics = "influx"', "'embedded' or an http(s) address", "VictoriaMetrics"),
        ("server = 3", "setting `server`", ""),
        ("[server\n", "is not valid TOML", "line"),
    ],
)
def test_wrong_setting_is_named_with_what_is_allowed_when_read(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(write(tmp_path, text), environ={})
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


def test_secret_is_not_repeated_when_it_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(write(tmp_path, '[server]\ntoken = "hunter2"'), environ={})
    assert "hunter2" not in caught.value.message + (caught.value.hint or "")


def test_secrets_are_hidden_when_settings_are_printed() -> None:
    settings = Settings.model_validate({"server": {"token": "0123456789abcdef"}})
    assert "0123456789abcdef" not in repr(settings)


def test_error_is_raised_when_the_configured_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_settings(tmp_path / "nowhere.toml", environ={})


def test_data_folder_is_absolute_when_it_is_the_default_or_begins_with_a_tilde(tmp_path: Path) -> None:
    for settings in (
        read_settings(environ={}),
        read_settings(environ={"CLUSTERSCAPE_STORAGE__METRICS": "embedded"}),
        read_settings(write(tmp_path, '[storage]\ndata_dir = "~/.local/share/clusterscape"'), environ={}),
    ):
        assert settings.storage.data_dir == Path.home() / ".local/share/clusterscape"


@pytest.mark.parametrize("path", ["data", "./data", "../data", "", "~nobody-of-this-name/data"])
def test_data_folder_is_refused_when_it_depends_on_the_working_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match=r"storage\.data_dir"):
        read_settings(write(tmp_path, f'[storage]\ndata_dir = "{path}"'), environ={})


def test_old_name_is_read_with_a_warning_when_a_setting_was_renamed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(
        tmp_path,
        """
        [rules]
        judge_every_s = 30
        [alerts.channels.team]
        kind = "slack"
        url = "https://hooks.example.org"
        tell_stops = false
        """,
    )
    settings = read_settings(path, environ={"CLUSTERSCAPE_LIMITS__WORK__AT_ONCE": "8"})
    assert settings.rules.evaluation_interval_s == 30
    assert settings.alerts.channels["team"].send_resolved is False
    assert settings.limits.work.concurrent_requests == 8
    assert f"{path}: setting `rules.judge_every_s` is deprecated, use `rules.evaluation_interval_s`" in caplog.messages
    assert "use `alerts.channels.team.send_resolved`" in caplog.text
    assert "the environment: setting `limits.work.at_once` is deprecated" in caplog.text


def test_new_name_wins_when_both_names_are_set(tmp_path: Path) -> None:
    both = write(tmp_path, "[rules]\nevaluation_interval_s = 20\njudge_every_s = 30")
    assert read_settings(both, environ={}).rules.evaluation_interval_s == 20
    old_variable = {"CLUSTERSCAPE_RULES__JUDGE_EVERY_S": "40"}
    assert read_settings(both, environ=old_variable).rules.evaluation_interval_s == 40, "later sources still win"


@pytest.mark.parametrize("old", RENAMED)
def test_renamed_setting_exists_under_its_new_name_only(old: str) -> None:
    *path, name = old.split(".")
    section = section_at(["alerts", "channels", "any", "slack"] if "*" in path else path)
    assert section is not None
    assert RENAMED[old] in section.model_fields
    assert name not in section.model_fields
