"""Limits on uploads per user and in total, including unfinished uploads."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from clusterscape.errors import QuotaError, TooLargeError
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.artifacts.quota import UploadQuota, UploadUse, count_use


class StoredUploads:
    """Uploads in a folder, with owners."""

    def __init__(self, folder: Path, limits: UploadLimits, free: int | None = None) -> None:
        self.artifacts = FolderArtifactStore(folder)
        self.owners: dict[str, str | None] = {}
        self.free = free
        find_free = None if free is None else lambda: int(self.free or 0)
        self.quota = UploadQuota(limits, self.count, find_free=find_free)

    def count(self) -> UploadUse:
        return count_use(self.artifacts, self.owners, ("traces/",))

    def put(self, owner: str | None, name: str, size: int, *, is_new: bool = True) -> None:
        upload = f"traces/{name}"
        with self.quota.write(owner, upload, is_new=is_new) as bound:
            self.artifacts.put(f"{upload}/{size}", bound(pieces(size)))
        self.owners[upload] = owner


def pieces(size: int) -> Iterator[bytes]:
    for start in range(0, size, 100):
        yield b"x" * min(100, size - start)


def cut_off() -> Iterator[bytes]:
    yield b"x"
    raise ValueError("cut off")


def test_uploads_of_one_user_are_limited_when_there_are_too_many(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(stored_traces_per_user=2, stored_traces=4))
    uploads.put("ada", "a", 10)
    uploads.put("ada", "b", 10)
    with pytest.raises(TooLargeError, match="you have 2 uploads") as raised:
        uploads.put("ada", "c", 10)
    assert raised.value.setting == "limits.uploads.stored_traces_per_user"
    uploads.put("bob", "d", 10)
    uploads.put(None, "e", 10)
    with pytest.raises(QuotaError, match="the limit of this server") as full:
        uploads.put("eve", "f", 10)
    assert full.value.http_status == 507
    uploads.artifacts.delete("traces/a/10")
    uploads.quota.forget()
    uploads.put("ada", "g", 10)


def test_an_upload_is_ended_when_a_user_has_too_many_bytes(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(stored_bytes_per_user=1000, stored_bytes=1500))
    uploads.put("ada", "a", 600)
    with pytest.raises(TooLargeError, match="your uploads would take more"):
        uploads.put("ada", "b", 500)
    assert [artifact.key for artifact in uploads.artifacts.list()] == ["traces/a/600"]
    uploads.put("bob", "c", 800)
    with pytest.raises(QuotaError, match="all uploads together"):
        uploads.put("eve", "d", 200)
    uploads.put("eve", "e", 100)


def test_unfinished_uploads_count_when_the_quota_is_checked(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(stored_bytes_per_user=1000))
    with uploads.quota.write("ada", "traces/a") as bound:
        first = bound(pieces(900))
        for _ in range(8):
            next(first)
        with pytest.raises(TooLargeError):
            uploads.put("ada", "b", 300)
        uploads.put("ada", "c", 200)


def test_upload_is_not_counted_when_it_failed(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(stored_bytes_per_user=1000))
    for _ in range(5):
        with pytest.raises(ValueError, match="cut off"), uploads.quota.write("ada", "traces/a") as bound:
            list(bound(chain(pieces(900), cut_off())))
    uploads.put("ada", "a", 900)


def test_files_of_a_trace_are_limited_when_there_are_too_many(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(trace_files=3))
    for size in (1, 2, 3):
        uploads.put("ada", "a", size, is_new=False)
    with pytest.raises(TooLargeError, match="3 files"):
        uploads.put("ada", "a", 4, is_new=False)


def test_files_of_one_user_are_limited_when_all_traces_together_have_too_many(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(stored_files_per_user=4))
    for name, size in (("a", 1), ("a", 2), ("b", 1), ("b", 2)):
        uploads.put("ada", name, size, is_new=False)
    with pytest.raises(TooLargeError, match="have 4 files") as raised:
        uploads.put("ada", "c", 1)
    assert raised.value.setting == "limits.uploads.stored_files_per_user"
    uploads.put("bob", "d", 1)
    uploads.artifacts.delete("traces/a/1")
    uploads.quota.forget()
    uploads.put("ada", "c", 1)


def test_uploads_are_refused_long_before_collection_pauses(tmp_path: Path) -> None:
    uploads = StoredUploads(tmp_path, UploadLimits(min_free_bytes=5 * 2**30), free=6 * 2**30)
    uploads.put("ada", "a", 10)
    uploads.free = 4 * 2**30
    with pytest.raises(QuotaError, match="are reserved for collection") as raised:
        uploads.put("ada", "b", 10)
    assert raised.value.setting == "limits.uploads.min_free_bytes"


def test_quota_error_is_raised_when_the_disk_is_full(tmp_path: Path) -> None:
    artifacts = FolderArtifactStore(tmp_path, min_free_bytes=2**60)
    quota = UploadQuota(UploadLimits(), UploadUse)
    with pytest.raises(QuotaError, match="the disk is full") as raised, quota.write("ada") as bound:
        artifacts.put("traces/a/b", bound(pieces(10)))
    assert str(tmp_path) not in raised.value.message
