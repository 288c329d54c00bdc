"""``clusterscape init``: its questions, and the validity of the file it writes."""

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.cli.init import SiteChoices, config_text, parse_exporters
from clusterscape.errors import ClusterScapeError, ConfigError
from clusterscape.settings import Settings, read_settings


def run_init(path: Path, *words: str, typed: str = "") -> str:
    """The output of the command; raises its errors."""
    done = CliRunner().invoke(app, ["init", "--config", str(path), "--no-check", *words], input=typed)
    if isinstance(done.exception, ClusterScapeError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def read(path: Path) -> Settings:
    return read_settings(path, environ={})


def test_answers_are_in_the_file_when_every_question_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    output = run_init(path, typed='Old "Tom"\nhttp://slurm:6820\noff\ngpu-[001-003,7]:9400, 10.0.0.5\n')
    settings = read(path)
    assert settings.cluster == 'Old "Tom"'
    assert (settings.collect.slurm.mode, settings.collect.slurm.url) == ("rest", "http://slurm:6820")
    assert settings.collect.dcgm.targets == ("gpu-[001-003,7]:9400", "10.0.0.5")
    assert settings.collect.prometheus.url is None
    assert f"clusterscape serve --config {path}" in output


def test_question_is_asked_again_when_a_target_is_invalid(tmp_path: Path) -> None:
    output = run_init(
        tmp_path / "site.toml", "--cluster", "a", "--slurm", "off", "--kubernetes", "off", typed="gpu-[9-1]\n-\n-\n"
    )
    assert "invalid range" in output
    assert read(tmp_path / "site.toml").collect.dcgm.targets == ()


def test_no_question_is_asked_when_all_options_are_given(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    run_init(
        path,
        "--yes",
        "--cluster",
        "a",
        "--slurm",
        "off",
        "--kubernetes",
        "in_cluster",
        "--prometheus",
        "http://prom:9090",
    )
    assert read(path).collect.kubernetes.mode == "in_cluster"
    assert read(path).collect.prometheus.url == "http://prom:9090"


def test_file_is_kept_when_it_is_already_there(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text("cluster = 'mine'\n")
    with pytest.raises(ConfigError, match="already exists"):
        run_init(path, "--yes")
    assert path.read_text() == "cluster = 'mine'\n"
    run_init(path, "--yes", "--force", "--cluster", "other", "--slurm", "off")
    assert read(path).cluster == "other"


def test_slurm_mode_is_refused_when_it_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="slurmctld"):
        run_init(tmp_path / "site.toml", "--yes", "--slurm", "slurmctld")
    assert not (tmp_path / "site.toml").exists()


def test_commented_settings_are_valid_when_the_marks_are_taken_off() -> None:
    text = config_text(SiteChoices())
    lines = [line.removeprefix("# ") for line in text.splitlines() if not line.startswith("# ") or _is_setting(line)]
    tree = tomllib.loads("\n".join(lines))
    tree["storage"]["records"] = "sqlite"  # the server of the example does not exist
    Settings.model_validate(tree)


def _is_setting(line: str) -> bool:
    body = line.removeprefix("# ")
    return body.startswith("[") or (" = " in body and body.split(" = ")[0].isidentifier())


def test_commas_inside_a_range_are_kept_when_targets_are_listed() -> None:
    assert parse_exporters("gpu-[1,3]:9400,,b") == ("gpu-[1,3]:9400", "b")


def test_file_names_an_absolute_data_folder_and_is_private_when_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, folder in (
        ([], Path.home() / ".local/share/clusterscape"),
        (["--data-dir", "here"], tmp_path / "here"),
        (["--data-dir", "~/there"], Path.home() / "there"),
    ):
        path = tmp_path / f"{len(words)}-{folder.name}.toml"
        run_init(path, "--yes", *words)
        assert tomllib.loads(path.read_text())["storage"]["data_dir"] == str(folder)
        assert path.stat().st_mode & 0o777 == 0o600
