"""How much of the disk uploads may take: of one user and in all, in number and in bytes, and never what collection needs.

Counts what the store holds, and what is being written; knows nothing of what files are. Safe to use from several threads.
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
"""What the store holds is counted again after so long, for other processes write to it, too."""
RECOUNT_S = 2.0
"""Before somebody is refused it is counted again, unless that was done just now."""
CHECK_BYTES = 16 << 20
"""The free space is looked at again after so many bytes."""
GIB = 2**30

Owners = Callable[[], Mapping[str, str | None]]
"""Who keeps each upload: (``traces/pipe-4f2a91`` → login); None: everybody's."""


@dataclass(frozen=True, slots=True)
class UploadUse:
    """What is kept: uploads and bytes, in all and by owner; files of each upload."""

    uploads: int = 0
    size_bytes: int = 0
    uploads_of: Counter[str] = field(default_factory=Counter)
    bytes_of: Counter[str] = field(default_factory=Counter)
    files_of: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, eq=False)
class _Writing:
    owner: str | None
    upload: str | None
    is_new: bool
    size_bytes: int = 0
    is_over: bool = False


def count_use(artifacts: ArtifactStore, owners: Mapping[str, str | None], prefixes: Iterable[str]) -> UploadUse:
    """What the store holds under ``prefixes`` (``traces/``)."""
    uploads: set[str] = set()
    uploads_of, bytes_of, files_of = Counter[str](), Counter[str](), Counter[str]()
    size_bytes = 0
    for prefix in prefixes:
        for each in artifacts.list(prefix):
            upload = "/".join(each.key.split("/")[:2])
            owner = owners.get(upload)
            size_bytes += each.size
            files_of[upload] += 1
            if owner is not None:
                bytes_of[owner] += each.size
                uploads_of[owner] += upload not in uploads
            uploads.add(upload)
    return UploadUse(len(uploads), size_bytes, uploads_of, bytes_of, files_of)


class UploadQuota:
    """``find_free``: free bytes of the device that uploads and collection share; None where they share none."""

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
        """What was kept when it was last counted, and in all also what was written since."""
        with self._lock:
            self._count_again(FRESH_S)
            return replace(self._use, uploads=self._uploads, size_bytes=self._size_bytes)

    @property
    def _uploads(self) -> int:
        return self._use.uploads + sum(each.is_new for each in self._writing)

    @property
    def _size_bytes(self) -> int:
        return self._use.size_bytes + sum(each.size_bytes for each in self._writing)

    def forget(self) -> None:
        """Something was deleted: count again when asked."""
        with self._lock:
            self._counted_at = None

    def add(self, owner: str | None, upload: str) -> None:
        """Count an upload whose files are still to come. Raises TooLargeError or QuotaError where it is one too many."""
        with self._lock:
            self._check_twice(lambda: self._check_number(owner))
            self._writing.append(_Writing(owner, upload, is_new=True, is_over=True))

    def check_free(self, more_bytes: int) -> None:
        """Raise QuotaError where the disk has no room for ``more_bytes`` beyond what stays free for collection."""
        least = self.limits.min_free_bytes
        free = None if self._find_free is None else self._find_free()
        if free is not None and free - more_bytes < least:
            raise QuotaError(
                f"the disk has {max(0, free) / GIB:,.1f} GiB free; {least / GIB:,.1f} GiB stay free for what is collected",
                setting="limits.uploads.min_free_bytes",
                hint="Delete uploads that nobody needs, or ask who runs this server to make room.",
            )

    @contextmanager
    def write(
        self, owner: str | None, upload: str | None = None, *, is_new: bool = False
    ) -> Iterator[Callable[[Iterable[bytes]], Iterator[bytes]]]:
        """Around writing a file of ``upload``: the chunks go through what it yields, and are counted.

        Raises TooLargeError, QuotaError; a disk that is full is a QuotaError, too.
        """
        writing = _Writing(owner, upload, is_new)
        with self._lock:
            if is_new:
                self._check_twice(lambda: self._check_number(owner))
            self._check_twice(lambda: self._check_files(upload))
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
        looked = -CHECK_BYTES
        for chunk in chunks:
            if writing.size_bytes - looked >= CHECK_BYTES:
                self.check_free(len(chunk))
                looked = writing.size_bytes
            with self._lock:
                writing.size_bytes += len(chunk)
                self._check_twice(lambda: self._check_bytes(writing.owner))
            yield chunk

    def _count_again(self, after_s: float) -> bool:
        now = time.monotonic()
        if self._counted_at is not None and now - self._counted_at < after_s:
            return False
        self._writing = [each for each in self._writing if not each.is_over]
        self._use, self._counted_at = self._count(), now
        return True

    def _check_twice(self, check: Callable[[], None]) -> None:
        """Refuse only by a count of now."""
        self._count_again(FRESH_S)
        try:
            check()
        except (TooLargeError, QuotaError):
            if not self._count_again(RECOUNT_S):
                raise
            check()

    def _check_number(self, owner: str | None) -> None:
        limits = self.limits
        own = self._use.uploads_of[owner or ""] + sum(each.is_new and each.owner == owner for each in self._writing)
        if owner is not None and own >= limits.kept_per_user:
            raise TooLargeError(
                f"you keep {own:,} uploads, and may keep {limits.kept_per_user:,}",
                setting="limits.uploads.kept_per_user",
                hint="Delete some that you no longer need.",
            )
        if self._uploads >= limits.kept:
            raise QuotaError(
                f"there are {limits.kept:,} uploads, as many as are kept here",
                setting="limits.uploads.kept",
                hint="Delete some that nobody needs.",
            )

    def _check_files(self, upload: str | None) -> None:
        if upload is None:
            return
        files = self._use.files_of[upload] + sum(each.upload == upload for each in self._writing)
        if files >= self.limits.trace_files:
            raise TooLargeError(
                f"a trace may have {self.limits.trace_files:,} files", setting="limits.uploads.trace_files"
            )

    def _check_bytes(self, owner: str | None) -> None:
        limits = self.limits
        own = self._use.bytes_of[owner or ""] + sum(e.size_bytes for e in self._writing if e.owner == owner)
        if owner is not None and own > limits.kept_bytes_per_user:
            raise TooLargeError(
                f"your uploads would take more than {limits.kept_bytes_per_user / GIB:,.1f} GiB",
                setting="limits.uploads.kept_bytes_per_user",
                hint="Delete some that you no longer need.",
            )
        if self._size_bytes > limits.kept_bytes:
            raise QuotaError(
                f"all uploads together would take more than {limits.kept_bytes / GIB:,.1f} GiB",
                setting="limits.uploads.kept_bytes",
                hint="Delete some that nobody needs.",
            )
