"""Artifacts in a folder when the disk is full."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterscape.errors import StoreFullError
from clusterscape.store.artifacts import ArtifactStore, FolderArtifactStore


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return FolderArtifactStore(tmp_path / "artifacts")


def test_error_is_raised_when_the_disk_is_full(store: ArtifactStore) -> None:
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
