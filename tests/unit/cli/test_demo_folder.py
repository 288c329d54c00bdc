"""A demo uses only folders that a demo created, one at a time, and removes nothing else."""

import json
from pathlib import Path

import pytest
from unit.cli.test_commands import run

from clusterscape.cli.demo_folder import DEMO_FILES, MARKER, hold_demo_folder, remove_demo_marker
from clusterscape.errors import ConfigError, StoreBusyError
from clusterscape.settings import StorageSettings
from clusterscape.store.data_folder import hold_data_folder
from clusterscape.store.records import open_record_store

CLUSTER: dict[str, int | str] = {"gpus": 8, "seed": 7, "placement": "spread"}


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def fill(folder: Path) -> None:
    """Write the files of a site or a demo."""
    open_record_store(StorageSettings(data_dir=folder)).close()
    (folder / "metrics").mkdir(exist_ok=True)
    (folder / "metrics/segment").write_bytes(b"samples")


def test_demo_command_refuses_and_changes_nothing_when_the_folder_is_a_sites(tmp_path: Path) -> None:
    site = tmp_path / "site"
    fill(site)
    before = contents(site)
    for words in ([], ["--fresh"]):
        done = run("demo", "--gpus", "8", "--port", "0", "--data-dir", str(site), *words)
        assert done.returncode == 2
        assert "is not the folder of a demo" in done.stderr
        assert "Nothing was changed" in done.stderr
    assert contents(site) == before
    assert not (site / MARKER).exists()


@pytest.mark.parametrize("marker", ["", "[]", "{}", '{"anchor_ms": 1}', "\x00"])
def test_folder_is_refused_when_its_marker_is_not_one_that_a_demo_wrote(tmp_path: Path, marker: str) -> None:
    fill(tmp_path)
    (tmp_path / MARKER).write_text(marker)
    before = contents(tmp_path)
    with (
        pytest.raises(ConfigError, match="is not the folder of a demo"),
        hold_demo_folder(tmp_path, CLUSTER, is_fresh=True),
    ):
        pass
    assert contents(tmp_path) == before


def test_demo_command_removes_nothing_when_another_process_holds_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with hold_demo_folder(folder, CLUSTER, is_fresh=False):
        fill(folder)
        before = contents(folder)
        done = run("demo", "--gpus", "16", "--fresh", "--port", "0", "--data-dir", str(folder))
        assert done.returncode == 1
        assert "is in use by process" in done.stderr
        assert contents(folder) == before


def test_lock_has_one_holder_when_two_want_a_new_folder(tmp_path: Path) -> None:
    first, second = (hold_demo_folder(tmp_path / "new", CLUSTER, is_fresh=False) for _ in range(2))
    with first as anchor_ms, pytest.raises(StoreBusyError), second:
        pass
    with hold_demo_folder(tmp_path / "new", CLUSTER, is_fresh=False) as again_ms:
        assert again_ms == anchor_ms


def test_folder_is_refused_when_a_part_of_it_is_a_link_elsewhere(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "demo"
    fill(site)
    with hold_demo_folder(folder, CLUSTER, is_fresh=False):
        pass
    before = contents(site)
    for name in ("metrics", "records.db"):
        (folder / name).symlink_to(site / name)
        for is_fresh in (False, True):
            with (
                pytest.raises(ConfigError, match="is a symbolic link"),
                hold_demo_folder(folder, CLUSTER, is_fresh=is_fresh),
            ):
                pass
        (folder / name).unlink()
    assert contents(site) == before


def test_only_a_demos_own_files_are_removed_when_it_starts_again(tmp_path: Path) -> None:
    with hold_demo_folder(tmp_path, CLUSTER, is_fresh=False) as anchor_ms:
        pass
    fill(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with hold_demo_folder(tmp_path, CLUSTER, is_fresh=False) as same_ms:
        assert same_ms == anchor_ms
        assert (tmp_path / "records.db").exists()
    other = {**CLUSTER, "gpus": 16}
    with hold_demo_folder(tmp_path, other, is_fresh=False):
        assert not [name for name in DEMO_FILES if (tmp_path / name).exists()]
        assert json.loads((tmp_path / MARKER).read_text())["cluster"] == other
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_folder_is_refused_when_a_server_has_used_it_since(tmp_path: Path) -> None:
    with hold_demo_folder(tmp_path, CLUSTER, is_fresh=False):
        pass
    fill(tmp_path)
    with hold_data_folder(tmp_path):
        remove_demo_marker(tmp_path)
    with pytest.raises(ConfigError), hold_demo_folder(tmp_path, CLUSTER, is_fresh=True):
        pass
    assert (tmp_path / "records.db").exists()
