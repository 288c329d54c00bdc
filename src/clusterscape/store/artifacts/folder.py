"""Artifacts as files of one folder. Writes go to a temporary name, are synced and renamed; a crash leaves no half artifact."""

import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from os import fsync, walk
from pathlib import Path
from typing import BinaryIO

from clusterscape.model import UnixMs
from clusterscape.store.artifacts.contract import ArtifactInfo
from clusterscape.store.artifacts.keys import check_key, missing
from clusterscape.store.metrics.embedded.files import make_folder, need_space, storage_errors, sync_folder

TEMPORARY_PREFIX = ".writing-"
UNFINISHED_AFTER_S = 600.0
SPACE_CHECK_BYTES = 16 << 20
"""The free space is looked at again after so many bytes."""


class FolderArtifactStore:
    """Implements ``ArtifactStore`` in ``folder``, which is made when something is first written."""

    def __init__(self, folder: Path, *, min_free_bytes: int = 0) -> None:
        self._folder = folder
        self._min_free_bytes = min_free_bytes

    def put(self, key: str, chunks: Iterable[bytes]) -> int:
        """Store an artifact, whole or not at all."""
        path = self._path(key)
        make_folder(path.parent)
        # Two writers of one key each have a file of their own: the later rename wins, neither is mixed up.
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        size, checked = 0, -SPACE_CHECK_BYTES
        try:
            with storage_errors(path):
                with temporary.open("wb") as file:
                    for chunk in chunks:
                        if size - checked >= SPACE_CHECK_BYTES:
                            need_space(path.parent, min_free_bytes=self._min_free_bytes + len(chunk))
                            checked = size
                        file.write(chunk)
                        size += len(chunk)
                    file.flush()
                    fsync(file.fileno())
                temporary.rename(path)
                sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return size

    def open(self, key: str) -> BinaryIO:
        """The content of an artifact."""
        try:
            return self._path(key).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise missing(key) from None

    def path(self, key: str) -> Path:
        """The artifact's own file."""
        path = self._path(key)
        if not path.is_file():
            raise missing(key)
        return path

    def list(self, prefix: str = "") -> list[ArtifactInfo]:
        """Artifacts whose key begins with ``prefix``, by key."""
        parent = prefix.rpartition("/")[0]
        root = self._path(parent) if parent else self._folder
        found = []
        for folder, _, names in walk(root):  # unlike rglob, passes over a folder that is deleted meanwhile
            for path in (Path(folder, name) for name in names):
                key = path.relative_to(self._folder).as_posix()
                if path.name.startswith(TEMPORARY_PREFIX) or not key.startswith(prefix):
                    continue
                with suppress(FileNotFoundError):  # deleted meanwhile
                    about = path.stat()
                    found.append(ArtifactInfo(key, about.st_size, UnixMs(about.st_mtime_ns // 1_000_000)))
        return sorted(found, key=lambda each: each.key)

    def delete(self, key: str) -> bool:
        """Remove an artifact, and folders that are empty then."""
        path = self._path(key)
        with storage_errors(path):
            try:
                path.unlink()
            except (FileNotFoundError, NotADirectoryError):
                return False
        for parent in path.parents:
            if parent == self._folder:
                break
            try:
                parent.rmdir()
            except OSError:  # others are in it
                break
        return True

    def remove_unfinished(self) -> None:
        """Remove files that nobody has written to for a while: whoever writes one writes all the time."""
        before_s = time.time() - UNFINISHED_AFTER_S
        for folder, _, names in walk(self._folder):
            for name in names:
                if name.startswith(TEMPORARY_PREFIX):
                    path = Path(folder, name)
                    with suppress(OSError):
                        if path.stat().st_mtime < before_s:
                            path.unlink()

    def _path(self, key: str) -> Path:
        return self._folder.joinpath(*check_key(key).split("/"))
