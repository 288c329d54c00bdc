"""Artifacts in a folder: whole or absent, safe names, a full disk said plainly."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterscape.errors import NotFoundError, QueryError, StoreError, StoreFullError
from clusterscape.store.artifacts import ArtifactStore, FolderArtifactStore


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return FolderArtifactStore(tmp_path / "artifacts")


def read(store: ArtifactStore, key: str) -> bytes:
    with store.open(key) as file:
        return file.read()


def test_content_comes_back_when_put_in_chunks(store: ArtifactStore) -> None:
    assert store.put("traces/a-1/spans.parquet", [b"one", b"", b"two"]) == 6
    assert read(store, "traces/a-1/spans.parquet") == b"onetwo"
    assert store.path("traces/a-1/spans.parquet").read_bytes() == b"onetwo"


def test_artifact_is_replaced_when_put_again(store: ArtifactStore) -> None:
    store.put("a/b", [b"older"])
    store.put("a/b", [b"new"])
    assert read(store, "a/b") == b"new"
    assert [each.key for each in store.list()] == ["a/b"]


def test_older_artifact_stays_when_chunks_fail(store: ArtifactStore) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    store.put("a/b", [b"older"])
    with pytest.raises((ConnectionError, StoreError)):
        store.put("a/b", broken())
    assert read(store, "a/b") == b"older"
    assert [(each.key, each.size) for each in store.list()] == [("a/b", 5)]


def test_listing_is_by_prefix_when_folders_are_nested(store: ArtifactStore) -> None:
    for key in ("traces/b/x", "traces/a/y", "traces/a/deep/z", "jobs/a", "traces/ab"):
        store.put(key, [b"1"])
    assert [each.key for each in store.list("traces/a/")] == ["traces/a/deep/z", "traces/a/y"]
    assert [each.key for each in store.list("traces/a")] == ["traces/a/deep/z", "traces/a/y", "traces/ab"]
    assert store.list("nothing/") == []


def test_deleting_says_whether_there_was_one_when_asked_twice(store: ArtifactStore) -> None:
    store.put("a/b/c", [b"1"])
    assert store.delete("a/b/c") is True
    assert store.delete("a/b/c") is False
    assert store.list() == []
    with pytest.raises(NotFoundError, match="no stored file a/b/c"):
        store.open("a/b/c")
    with pytest.raises(NotFoundError):
        store.path("a/b")


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.hidden", "a/", "a\\b", "a\x00b", "a\nb", "x" * 600]
)
def test_key_is_refused_when_it_could_leave_the_folder(store: ArtifactStore, key: str) -> None:
    with pytest.raises(QueryError, match="cannot be the name"):
        store.put(key, [b"1"])
    with pytest.raises(QueryError):
        store.open(key)


def test_full_disk_is_said_when_writing(store: ArtifactStore) -> None:
    def full() -> Iterator[bytes]:
        yield b"1"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreFullError, match="is full"):
        store.put("a", full())
    assert store.list() == []


def test_space_that_must_stay_free_is_kept_when_little_is_left(tmp_path: Path) -> None:
    store = FolderArtifactStore(tmp_path, min_free_bytes=1 << 60)
    with pytest.raises(StoreFullError, match="must stay free"):
        store.put("a", [b"1"])
