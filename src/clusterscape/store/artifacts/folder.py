"""Artifacts as files of a folder. Writes are atomic: a temporary file is synced and renamed."""

import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from os import fsync, scandir, walk
from pathlib import Path
from typing import BinaryIO

from clusterscape.model import UnixMs
from clusterscape.store.artifacts.contract import ArtifactInfo, check_key, missing_artifact
from clusterscape.store.files import check_free_space, make_folder, storage_errors, sync_folder

TEMPORARY_PREFIX = ".writing-"
UNFINISHED_AFTER_S = 600.0
SPACE_CHECK_BYTES = 16 << 20
"""Free space is checked again after this many bytes."""


class FolderArtifactStore:
    """Implements ``ArtifactStore`` in ``folder``, which is created at the first write."""

    def __init__(self, folder: Path, *, min_free_bytes: int = 0) -> None:
        self._folder = folder
        self._min_free_bytes = min_free_bytes

    def put(self, key: str, chunks: Iterable[bytes]) -> int:
        """Store an artifact atomically."""
        path = self._path(key)
        make_folder(path.parent)
        # Every writer has its own file, so that concurrent writers of a key never mix; the last rename wins.
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        size, checked = 0, -SPACE_CHECK_BYTES
        try:
            with storage_errors(path):
                with temporary.open("wb") as file:
                    for chunk in chunks:
                        if size - checked >= SPACE_CHECK_BYTES:
                            check_free_space(path.parent, min_free_bytes=self._min_free_bytes + len(chunk))
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
            raise missing_artifact(key) from None

    def path(self, key: str) -> Path:
        """The file of the artifact."""
        path = self._path(key)
        if not path.is_file():
            raise missing_artifact(key)
        return path

    def list(self, prefix: str = "") -> list[ArtifactInfo]:
        """Artifacts whose key starts with ``prefix``, by key."""
        parent = prefix.rpartition("/")[0]
        root = self._path(parent) if parent else self._folder
        artifacts = []
        for folder, _, names in walk(root):  # unlike rglob, skips folders that are deleted meanwhile
            for path in (Path(folder, name) for name in names):
                key = path.relative_to(self._folder).as_posix()
                if path.name.startswith(TEMPORARY_PREFIX) or not key.startswith(prefix):
                    continue
                with suppress(FileNotFoundError):  # deleted meanwhile
                    about = path.stat()
                    artifacts.append(ArtifactInfo(key, about.st_size, UnixMs(about.st_mtime_ns // 1_000_000)))
        return sorted(artifacts, key=lambda artifact: artifact.key)

    def folders(self, prefix: str) -> Sequence[str]:
        """The folders in a folder, by name."""
        try:
            with scandir(self._path(prefix.removesuffix("/"))) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, key: str) -> bool:
        """Remove an artifact, and folders that become empty."""
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
            except OSError:  # not empty
                break
        return True

    def remove_unfinished(self) -> None:
        """Remove temporary files without writes for a while: active writers write continuously."""
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
