"""Permissions of the files of a site: real commands under real umasks, folders of older versions and of other users."""

import json
import os
import signal
import stat
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from unit.cli.test_commands import run, write

from clusterscape.settings import StorageSettings, read_settings, reading
from clusterscape.store.data_folder import SITE_ENTRIES
from clusterscape.store.records import open_record_store

PASSWORD = "correct horse battery staple\n"


def wide(folder: Path) -> list[str]:
    """Paths, including the folder, that grant a permission to others than the owner."""
    paths = (folder, *folder.rglob("*"))
    return [f"{path} {path.stat().st_mode:o}" for path in paths if path.stat().st_mode & 0o077]


def call(umask: int, *words: str, typed: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "clusterscape.cli", *words],
        umask=umask,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def serve_once(umask: int, config: str) -> dict[str, object]:
    """The output of a server up to readiness; it is stopped at once."""
    server = subprocess.Popen(
        [sys.executable, "-m", "clusterscape.cli", "serve", "--port", "0", "--json", "--config", config],
        umask=umask,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    output = ""
    while (line := server.stdout.readline()) and line != "}\n":
        output += line
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    ready: dict[str, object] = json.loads(f"{output}}}")
    return ready


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_files_are_private_to_their_owner_when_commands_create_them(tmp_path: Path, umask: int) -> None:
    site, copy, moved = tmp_path / "site", tmp_path / "copy", tmp_path / "moved"
    config = write(tmp_path, f"[storage]\ndata_dir = '{site}'\n[auth]\nmodes = ['local']\n")
    (tmp_path / "there").mkdir()
    other = write(tmp_path / "there", f"[storage]\ndata_dir = '{copy}'\n")
    ready = serve_once(umask, config)
    assert (ready["data_dir"], ready["config"]) == (str(site), config)
    call(umask, "user", "add", "ada", "--password-stdin", "--config", config, typed=PASSWORD)
    saved = tmp_path / "site.tar"
    assert json.loads(call(umask, "backup", str(saved), "--json", "--config", config))["data_dir"] == str(site)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    call(umask, "restore", str(saved), "--config", other)
    call(umask, "migrate", "--to", str(moved), "--config", config)
    assert wide(site) + wide(copy) + wide(moved) == []
    names = {path.name for folder in (site, copy, moved) for path in folder.iterdir()}
    assert {"records.db", "metrics", "site.lock"} <= names
    assert [name for name in names if not any(fnmatch(name, pattern) for pattern in SITE_ENTRIES)] == []
    assert list(tmp_path.glob(".site.tar*")) == []


def open_up(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def fill(folder: Path) -> None:
    open_record_store(StorageSettings(data_dir=folder)).close()
    (folder / "artifacts/traces").mkdir(parents=True)
    (folder / "artifacts/traces/spans").write_bytes(b"spans")


def test_folder_of_an_older_version_becomes_private_when_a_command_opens_it(tmp_path: Path) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    fill(site)
    elsewhere.write_text("not ours")
    (site / "records.db-wal").unlink(missing_ok=True)
    (site / "artifacts/link").symlink_to(elsewhere)
    open_up(site)
    config = write(tmp_path, f"[storage]\ndata_dir = '{site}'\n")
    done = run("user", "list", "--config", config)
    assert done.returncode == 0, done.stderr
    assert "could be read by other users" in done.stderr
    (site / "artifacts/link").unlink()
    assert wide(site) == []
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644
    assert "could be read" not in run("user", "list", "--config", config).stderr


def test_only_the_sites_files_become_private_when_its_folder_holds_others(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    fill(shared)
    (shared / "photos").mkdir()
    open_up(shared)
    config = write(tmp_path, f"[storage]\ndata_dir = '{shared}'\n")
    assert run("user", "list", "--config", config).returncode == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in (shared, shared / "photos")} == {0o755}
    assert wide(shared / "artifacts") == []
    assert stat.S_IMODE((shared / "records.db").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize(
    "words", [["user", "list"], ["serve", "--port", "0"], ["doctor"], ["backup", "x.tar"]], ids=" ".join
)
def test_root_leaves_nothing_behind_when_the_folder_is_a_service_users(tmp_path: Path, words: list[str]) -> None:
    site = tmp_path / "site"
    fill(site)
    for path in (site, *site.rglob("*")):
        os.chown(path, 12345, 12345)
    before = {path: path.stat().st_mtime_ns for path in (site, *site.rglob("*"))}
    done = run(*words, "--config", write(tmp_path, f"[storage]\ndata_dir = '{site}'\n"))
    assert done.returncode == 1
    assert f"{site} belongs to #12345, but the current user is root" in done.stdout + done.stderr
    assert "sudo -u" in done.stdout + done.stderr
    assert before == {path: path.stat().st_mtime_ns for path in (site, *site.rglob("*"))}


def test_doctor_names_readable_files_and_changes_nothing_when_modes_are_wide(tmp_path: Path) -> None:
    site = tmp_path / "site"
    fill(site)
    open_up(site)
    (site / "old.tar").write_bytes(b"")
    (site / "old.tar").chmod(0o644)
    secret = "server-token-of-16+"
    config = write(tmp_path, f"[storage]\ndata_dir = '{site}'\n[server]\ntoken = '{secret}'\n")
    Path(config).chmod(0o644)
    checks = json.loads(run("doctor", "--json", "--config", config).stdout)
    messages = [check["message"] for check in checks if check["what"] == "permissions" and not check["ok"]]
    assert len(messages) == 2
    assert str(site) in messages[0]
    assert f"{config} contains secrets" in messages[1]
    assert secret not in json.dumps(checks)
    assert stat.S_IMODE(site.stat().st_mode) == 0o755
    Path(config).chmod(0o640)
    for path in (site, *site.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    checks = json.loads(run("doctor", "--json", "--config", config).stdout)
    assert [check["ok"] for check in checks if check["what"] == "permissions"] == [True]


def test_doctor_creates_no_folder_when_the_site_never_started(tmp_path: Path) -> None:
    config = write(tmp_path, f"[storage]\ndata_dir = '{tmp_path}/site'\n")
    checks = {check["what"]: check for check in json.loads(run("doctor", "--json", "--config", config).stdout)}
    assert checks["data folder"]["ok"]
    assert "created at the first start" in checks["data folder"]["message"]
    assert not (tmp_path / "site").exists()


def test_data_is_in_the_home_folder_when_no_folder_is_named(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "clusterscape.cli", "user", "list"],
        cwd=here,
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"data folder: {home}/.local/share/clusterscape" in done.stderr
    assert (home / ".local/share/clusterscape/records.db").exists()
    assert list(here.iterdir()) == []


def test_services_file_is_used_when_a_command_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "etc/clusterscape.toml"
    monkeypatch.setattr(reading, "SITE_CONFIG", file)
    assert reading.find_config(None) is None
    file.parent.mkdir()
    file.write_text("cluster = 'serviced'")
    assert read_settings(reading.find_config(None), environ={}).cluster == "serviced"
    assert reading.find_config(tmp_path / "own.toml") == tmp_path / "own.toml"
