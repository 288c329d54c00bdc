import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from servers.programs import free_port

from clusterscape.errors import ConfigError, StoreError
from clusterscape.settings import StorageSettings
from clusterscape.store.records import open_record_store


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Run the block as ``nobody`` if this is root, because root ignores permissions."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def closed_dir(tmp_path: Path) -> Iterator[Path]:
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def test_the_folder_is_named_when_it_may_not_be_written(closed_dir: Path) -> None:
    with ordinary_user(), pytest.raises(StoreError, match=r"closed/records\.db") as caught:
        open_record_store(StorageSettings(data_dir=closed_dir))
    assert "write permission" in str(caught.value.hint)


def test_the_folder_is_named_when_it_may_not_be_created(closed_dir: Path) -> None:
    with ordinary_user(), pytest.raises(StoreError, match=r"cannot create the folder .*/closed/new") as caught:
        open_record_store(StorageSettings(data_dir=closed_dir / "new"))
    assert "storage.data_dir" in str(caught.value.hint)


def test_a_foreign_file_is_refused_when_it_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "records.db").write_text("my shopping list, which is longer than any header of a database file " * 20)
    with pytest.raises(StoreError, match="not an SQLite database"):
        open_record_store(StorageSettings(data_dir=tmp_path))


def test_the_extra_to_install_is_named_when_the_driver_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match="driver is not installed") as caught:
        open_record_store(StorageSettings(data_dir=tmp_path, records="postgresql://me@127.0.0.1/db"))
    assert caught.value.hint == "pip install 'clusterscape[postgres]'"


@pytest.mark.parametrize("records", ["sqlite:///", "sqlite:///:memory:", "postgresql://host:port/db"])
def test_the_address_is_refused_when_it_names_no_database(tmp_path: Path, records: str) -> None:
    with pytest.raises(ConfigError, match=r"storage\.records"):
        open_record_store(StorageSettings(data_dir=tmp_path, records=records))


def test_the_server_is_named_without_password_when_it_does_not_answer(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(StoreError, match=f"127.0.0.1:{port}/records") as caught:
        open_record_store(StorageSettings(records=f"postgresql://me:hidden-word@127.0.0.1:{port}/records"))
    assert "server runs" in str(caught.value.hint)
    assert "hidden-word" not in caught.value.message
