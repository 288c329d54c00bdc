"""Quotas of uploads: number and bytes, per user and in total, and the disk space reserved for collection.

Counts stored files and running writes. Thread-safe.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from clusterscape.errors import QuotaError, StoreFullError, TooLargeError
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts.contract import ArtifactStore

FRESH_S = 60.0
"""Stored files are counted again after this long, because other processes write, too."""
RECOUNT_S = 2.0
"""Before an upload is rejected, files are counted again unless the count is newer than this."""
CHECK_BYTES = 16 << 20
"""Free space is checked again after this many bytes."""
GIB = 2**30

Owners = Callable[[], Mapping[str, str | None]]
"""Returns the owner of each upload (``traces/pipe-4f2a91`` → login); None: shared."""


@dataclass(frozen=True, slots=True)
class UploadUse:
    """Stored uploads and bytes, in total and by owner; files by owner and of each upload."""

    uploads: int = 0
    size_bytes: int = 0
    uploads_of: Counter[str] = field(default_factory=Counter)
    bytes_of: Counter[str] = field(default_factory=Counter)
    files_of: Counter[str] = field(default_factory=Counter)
    owned_files: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, eq=False)
class _Writing:
    owner: str | None
    upload: str | None
    is_new: bool
    size_bytes: int = 0
    is_over: bool = False


def count_use(artifacts: ArtifactStore, owners: Mapping[str, str | None], prefixes: Iterable[str]) -> UploadUse:
    """Count the uploads under ``prefixes`` (``traces/``)."""
    uploads: set[str] = set()
    uploads_of, bytes_of, files_of, owned_files = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    size_bytes = 0
    for prefix in prefixes:
        for artifact in artifacts.list(prefix):
            upload = "/".join(artifact.key.split("/")[:2])
            owner = owners.get(upload)
            size_bytes += artifact.size
            files_of[upload] += 1
            if owner is not None:
                bytes_of[owner] += artifact.size
                owned_files[owner] += 1
                uploads_of[owner] += upload not in uploads
            uploads.add(upload)
    return UploadUse(len(uploads), size_bytes, uploads_of, bytes_of, files_of, owned_files)


class UploadQuota:
    """Checks uploads against limits. ``find_free``: free bytes of the disk shared with collection; None: not shared."""

    def __init__(
        self,
        limits: UploadLimits,
        count: Callable[[], UploadUse],
        *,
        find_free: Callable[[], int] | None = None,
    ) -> None:
        self.limits = limits
        self._count = count
        self._find_free = find_free
        self._lock = threading.RLock()
        self._use = UploadUse()
        self._counted_at: float | None = None
        self._writing: list[_Writing] = []

    def use(self) -> UploadUse:
        """Stored uploads as last counted; the totals include writes since."""
        with self._lock:
            self._count_again(FRESH_S)
            return replace(self._use, uploads=self._uploads, size_bytes=self._size_bytes)

    @property
    def _uploads(self) -> int:
        return self._use.uploads + sum(write.is_new for write in self._writing)

    @property
    def _size_bytes(self) -> int:
        return self._use.size_bytes + sum(write.size_bytes for write in self._writing)

    def forget(self) -> None:
        """Count again at the next check, because something was deleted."""
        with self._lock:
            self._counted_at = None

    def add(self, owner: str | None, upload: str) -> None:
        """Count an upload before its files arrive. Raises TooLargeError or QuotaError if it exceeds a limit."""
        with self._lock:
            self._check_twice(lambda: self._check_number(owner))
            self._writing.append(_Writing(owner, upload, is_new=True, is_over=True))

    def check_free(self, more_bytes: int) -> None:
        """Raise QuotaError if ``more_bytes`` would use disk space that is reserved for collection."""
        least = self.limits.min_free_bytes
        free = None if self._find_free is None else self._find_free()
        if free is not None and free - more_bytes < least:
            raise QuotaError(
                f"the disk has {max(0, free) / GIB:,.1f} GiB free; {least / GIB:,.1f} GiB are reserved for collection",
                setting="limits.uploads.min_free_bytes",
                hint="Delete uploads that are no longer needed, or ask the server's administrator to free space.",
            )

    @contextmanager
    def write(
        self, owner: str | None, upload: str | None = None, *, is_new: bool = False
    ) -> Iterator[Callable[[Iterable[bytes]], Iterator[bytes]]]:
        """Context for writing a file of ``upload``: the yielded function counts the chunks that pass through it.

        Raises TooLargeError, or QuotaError, also if the disk is full.
        """
        writing = _Writing(owner, upload, is_new)
        with self._lock:
            if is_new:
                self._check_twice(lambda: self._check_number(owner))
            self._check_twice(lambda: self._check_files(owner, upload))
            self._writing.append(writing)
        try:
            yield lambda chunks: self._bound(writing, chunks)
        except StoreFullError as error:
            self._drop(writing)
            raise QuotaError("the disk is full", setting="limits.uploads", hint="Delete uploads.") from error
        except BaseException:
            self._drop(writing)
            raise
        writing.is_over = True  # counted here until the store is counted again

    def _drop(self, writing: _Writing) -> None:
        with self._lock:
            if writing in self._writing:
                self._writing.remove(writing)

    def _bound(self, writing: _Writing, chunks: Iterable[bytes]) -> Iterator[bytes]:
        checked = -CHECK_BYTES
        for chunk in chunks:
            if writing.size_bytes - checked >= CHECK_BYTES:
                self.check_free(len(chunk))
                checked = writing.size_bytes
            with self._lock:
                writing.size_bytes += len(chunk)
                self._check_twice(lambda: self._check_bytes(writing.owner))
            yield chunk

    def _count_again(self, after_s: float) -> bool:
        now = time.monotonic()
        if self._counted_at is not None and now - self._counted_at < after_s:
            return False
        self._writing = [write for write in self._writing if not write.is_over]
        self._use, self._counted_at = self._count(), now
        return True

    def _check_twice(self, check: Callable[[], None]) -> None:
        """Reject only by a fresh count."""
        self._count_again(FRESH_S)
        try:
            check()
        except (TooLargeError, QuotaError):
            if not self._count_again(RECOUNT_S):
                raise
            check()

    def _check_number(self, owner: str | None) -> None:
        limits = self.limits
        own = self._use.uploads_of[owner or ""] + sum(write.is_new and write.owner == owner for write in self._writing)
        if owner is not None and own >= limits.stored_traces_per_user:
            raise TooLargeError(
                f"you have {own:,} uploads, the limit is {limits.stored_traces_per_user:,}",
                setting="limits.uploads.stored_traces_per_user",
                hint="Delete some that you no longer need.",
            )
        if self._uploads >= limits.stored_traces:
            raise QuotaError(
                f"there are {limits.stored_traces:,} uploads, which is the limit of this server",
                setting="limits.uploads.stored_traces",
                hint="Delete some that are no longer needed.",
            )

    def _check_files(self, owner: str | None, upload: str | None) -> None:
        own = self._use.owned_files[owner or ""] + sum(write.owner == owner for write in self._writing)
        if owner is not None and own >= self.limits.stored_files_per_user:
            raise TooLargeError(
                f"your uploads have {own:,} files, the limit is {self.limits.stored_files_per_user:,}",
                setting="limits.uploads.stored_files_per_user",
                hint="Import the traces whose files you sent, or delete some.",
            )
        if upload is None:
            return
        files = self._use.files_of[upload] + sum(write.upload == upload for write in self._writing)
        if files >= self.limits.trace_files:
            raise TooLargeError(
                f"a trace may have {self.limits.trace_files:,} files", setting="limits.uploads.trace_files"
            )

    def _check_bytes(self, owner: str | None) -> None:
        limits = self.limits
        own = self._use.bytes_of[owner or ""] + sum(write.size_bytes for write in self._writing if write.owner == owner)
        if owner is not None and own > limits.stored_bytes_per_user:
            raise TooLargeError(
                f"your uploads would take more than {limits.stored_bytes_per_user / GIB:,.1f} GiB",
                setting="limits.uploads.stored_bytes_per_user",
                hint="Delete some that you no longer need.",
            )
        if self._size_bytes > limits.stored_bytes:
            raise QuotaError(
                f"all uploads together would take more than {limits.stored_bytes / GIB:,.1f} GiB",
                setting="limits.uploads.stored_bytes",
                hint="Delete some that are no longer needed.",
            )
