"""The spool's file: losses by a damaged tail, and files that are refused."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from alerting.turns import T0, flat, started

from clusterscape.errors import StoreError, StoreVersionError
from clusterscape.watch.alerts.spool import AlertSpool


def copy_while_open(source: Path, target: Path) -> Path:
    """A copy of the files as they are, as after a power cut."""
    target.mkdir()
    for path in source.parent.glob("alerts.db*"):
        shutil.copy(path, target / path.name)
    return target / "alerts.db"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A spool of ten posts that was never closed."""
    (tmp_path / "live").mkdir()
    spool = AlertSpool(tmp_path / "live/alerts.db")
    spool.register({"hook": "webhook"})
    for number in range(10):
        spool.post({"hook": [flat(started(f"w{number}"))]}, T0)
    copy = copy_while_open(tmp_path / "live/alerts.db", tmp_path / "copy")
    spool.close()
    return copy


def workloads(path: Path) -> list[str]:
    spool = AlertSpool(path)
    waiting = [post.turn.workload for post in spool.waiting("hook")]
    spool.close()
    return waiting


def test_everything_is_there_when_the_spool_was_not_closed(written: Path) -> None:
    assert workloads(written) == [f"w{number}" for number in range(10)]


@pytest.mark.parametrize("lost_bytes", [1, 700, 5000, 9000])
def test_only_the_torn_posts_are_lost_when_the_tail_is_cut(written: Path, lost_bytes: int) -> None:
    journal = written.with_name("alerts.db-wal")
    data = journal.read_bytes()
    journal.write_bytes(data[:-lost_bytes])
    waiting = workloads(written)
    assert waiting == [f"w{number}" for number in range(len(waiting))]
    assert 7 <= len(waiting) < 10


def test_only_the_torn_posts_are_lost_when_the_tail_is_garbage(written: Path) -> None:
    journal = written.with_name("alerts.db-wal")
    data = journal.read_bytes()
    journal.write_bytes(data[:-600] + b"\xff" * 600)
    assert workloads(written) == [f"w{number}" for number in range(9)]


def test_newer_spool_is_refused_when_opened(written: Path) -> None:
    AlertSpool(written).close()
    with sqlite3.connect(written) as connection:
        connection.execute("UPDATE meta SET version = 99")
    connection.close()
    with pytest.raises(StoreVersionError, match="newer"):
        AlertSpool(written)


def test_error_is_raised_when_a_damaged_spool_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "alerts.db"
    path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(StoreError, match="cannot read or write"):
        AlertSpool(path)
