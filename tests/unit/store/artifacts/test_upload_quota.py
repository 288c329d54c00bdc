"""Uploads take what they may of the disk, alone and together, also while they are being written."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from clusterscape.errors import QuotaError, TooLargeError
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.artifacts.quota import UploadQuota, UploadUse, count_use


class Kept:
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


def test_one_user_keeps_a_number_of_uploads_and_others_go_on(tmp_path: Path) -> None:
    kept = Kept(tmp_path, UploadLimits(kept_per_user=2, kept=4))
    kept.put("ada", "a", 10)
    kept.put("ada", "b", 10)
    with pytest.raises(TooLargeError, match="you keep 2 uploads") as raised:
        kept.put("ada", "c", 10)
    assert raised.value.setting == "limits.uploads.kept_per_user"
    kept.put("bob", "d", 10)
    kept.put(None, "e", 10)
    with pytest.raises(QuotaError, match="as many as are kept") as full:
        kept.put("eve", "f", 10)
    assert full.value.http_status == 507
    kept.artifacts.delete("traces/a/10")
    kept.quota.forget()
    kept.put("ada", "g", 10)


def test_an_upload_is_ended_when_a_user_has_too_many_bytes(tmp_path: Path) -> None:
    kept = Kept(tmp_path, UploadLimits(kept_bytes_per_user=1000, kept_bytes=1500))
    kept.put("ada", "a", 600)
    with pytest.raises(TooLargeError, match="your uploads would take more"):
        kept.put("ada", "b", 500)
    assert [each.key for each in kept.artifacts.list()] == ["traces/a/600"]
    kept.put("bob", "c", 800)
    with pytest.raises(QuotaError, match="all uploads together"):
        kept.put("eve", "d", 200)
    kept.put("eve", "e", 100)


def test_uploads_under_way_count(tmp_path: Path) -> None:
    kept = Kept(tmp_path, UploadLimits(kept_bytes_per_user=1000))
    with kept.quota.write("ada", "traces/a") as bound:
        first = bound(pieces(900))
        for _ in range(8):
            next(first)
        with pytest.raises(TooLargeError):
            kept.put("ada", "b", 300)
        kept.put("ada", "c", 200)


def test_an_upload_that_failed_counts_no_more(tmp_path: Path) -> None:
    kept = Kept(tmp_path, UploadLimits(kept_bytes_per_user=1000))
    for _ in range(5):
        with pytest.raises(ValueError, match="cut off"), kept.quota.write("ada", "traces/a") as bound:
            list(bound(chain(pieces(900), cut_off())))
    kept.put("ada", "a", 900)


def test_a_trace_has_a_number_of_files(tmp_path: Path) -> None:
    kept = Kept(tmp_path, UploadLimits(trace_files=3))
    for size in (1, 2, 3):
        kept.put("ada", "a", size, is_new=False)
    with pytest.raises(TooLargeError, match="3 files"):
        kept.put("ada", "a", 4, is_new=False)


def test_uploads_are_refused_long_before_collection_pauses(tmp_path: Path) -> None:
    kept = Kept(tmp_path, UploadLimits(min_free_bytes=5 * 2**30), free=6 * 2**30)
    kept.put("ada", "a", 10)
    kept.free = 4 * 2**30
    with pytest.raises(QuotaError, match="stay free for what is collected") as raised:
        kept.put("ada", "b", 10)
    assert raised.value.setting == "limits.uploads.min_free_bytes"


def test_a_disk_that_is_full_is_a_quota_to_users(tmp_path: Path) -> None:
    artifacts = FolderArtifactStore(tmp_path, min_free_bytes=2**60)
    quota = UploadQuota(UploadLimits(), UploadUse)
    with pytest.raises(QuotaError, match="the disk is full") as raised, quota.write("ada") as bound:
        artifacts.put("traces/a/b", bound(pieces(10)))
    assert str(tmp_path) not in raised.value.message
