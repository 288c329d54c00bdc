"""Local copies of artifacts that live elsewhere, for readers that need a file. Bounded: the longest unused ones go."""

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from clusterscape.errors import StoreError
from clusterscape.store.metrics.embedded.files import need_space, storage_errors

IN_USE_S = 3600.0
"""A copy that was asked for this recently may still be read by somebody, and stays."""


class LocalCopies:
    """Copies in ``folder``: one folder for each key, in it one file for each version, under the artifact's own name."""

    def __init__(self, folder: Path, *, max_bytes: int, min_free_bytes: int = 0) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._min_free_bytes = min_free_bytes

    def find(self, key: str, version: str, *, size: int, content: Callable[[], Iterator[bytes]]) -> Path:
        """The copy of this version of ``key``, made from ``content`` where there is none."""
        name = hashlib.sha256(version.encode()).hexdigest()[:16]
        path = self._home(key) / name / key.rpartition("/")[2]
        if path.is_file() and path.stat().st_size == size:
            with suppress(OSError):
                os.utime(path)
            return path
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_room(size)
            need_space(path.parent, min_free_bytes=self._min_free_bytes + size)
            temporary = path.with_name(f".copying-{uuid.uuid4().hex}")
            try:
                with temporary.open("wb") as file:
                    for piece in content():
                        file.write(piece)
                    copied = file.tell()
                if copied != size:
                    raise StoreError(f"{key} ended after {copied:,} of {size:,} bytes", hint="Ask again.")
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
        return path

    def forget(self, key: str) -> None:
        """Remove the copies of an artifact that is gone."""
        for path in self._home(key).glob("*/*"):
            path.unlink(missing_ok=True)

    def _home(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()[:16]

    def _make_room(self, size: int) -> None:
        files = [(path, path.stat()) for path in self._folder.glob("*/*/*") if path.is_file()]
        held = sum(about.st_size for _, about in files)
        for path, about in sorted(files, key=lambda item: item[1].st_mtime):
            if held + size <= self._max_bytes or time.time() - about.st_mtime < IN_USE_S:
                return
            path.unlink(missing_ok=True)
            held -= about.st_size
