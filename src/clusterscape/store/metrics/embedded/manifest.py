"""The files of the embedded store: format version, lock, the manifest that replaces files atomically, and consistent
snapshots for backups while the server writes.

A segment is live only while the manifest lists it, and a recent file only while its number is above ``compacted_seq``. So one
rename of the manifest replaces old files by new segments, and a crash before or after it neither loses nor duplicates samples.

Files never change, so a snapshot is consistent if the manifest is the same before and after; hard links keep files that are
compacted later.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from clusterscape.errors import StoreBusyError, StoreError, StoreVersionError
from clusterscape.store.files import hold_lock, write_file

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEntry:
    """One segment file in the manifest."""

    file: str  # relative to the store's folder
    seq: int  # number of its last write: of duplicate samples the higher number wins
    start_ms: int  # of its first sample
    last_ms: int  # of its last sample, inclusive
    rows: int
    samples: int
    size_bytes: int
    crc32: int  # of the whole file
    metrics: tuple[str, ...]  # its value columns
    step_ms: int = 0  # of coarse values; 0: raw samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The live files of a store."""

    compacted_seq: int = 0  # recent files up to this number are in segments
    raw_from_ms: int = 0  # before this time only coarse values exist
    raw: tuple[SegmentEntry, ...] = ()
    coarse: tuple[SegmentEntry, ...] = ()
    coarse_days: dict[int, int] = field(default_factory=dict)  # day number → last write included in its coarse values

    @property
    def last_seq(self) -> int:
        """The highest number of a write in segments."""
        return max([self.compacted_seq, *(entry.seq for entry in self.raw), *self.coarse_days.values()])


def check_version(folder: Path) -> None:
    """Raise if a newer version wrote the folder. Changes nothing."""
    path = folder / "FORMAT"
    if not path.exists():
        return
    words = path.read_text(encoding="ascii", errors="replace").split()
    version = words[1] if len(words) == 2 and words[0] == "clusterscape-metrics" else ""
    if not version.isdecimal():
        raise StoreError(
            f"{path} does not name a format version",
            hint="Set `storage.data_dir` to a folder that only ClusterScape uses.",
        )
    if int(version) > FORMAT_VERSION:
        raise StoreVersionError(
            f"{folder} has format {version}, this version of ClusterScape supports formats up to {FORMAT_VERSION}",
            hint="Use the newer version, or set `storage.data_dir` to another folder.",
        )


def create(folder: Path) -> None:
    """Create an empty store in ``folder`` unless it has one."""
    path = folder / "FORMAT"
    if not path.exists():
        write_manifest(folder, Manifest())
        write_file(path, f"clusterscape-metrics {FORMAT_VERSION}\n".encode("ascii"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the store against other processes and other stores of this process."""
    with hold_lock(folder / "lock", guards=folder):
        yield


def read_manifest(folder: Path) -> Manifest:
    """The manifest of ``folder``."""
    path = folder / "manifest.json"
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Manifest(
            compacted_seq=int(fields["compacted_seq"]),
            raw_from_ms=int(fields["raw_from_ms"]),
            raw=tuple(_entry(item) for item in fields["raw"]),
            coarse=tuple(_entry(item) for item in fields["coarse"]),
            coarse_days={int(day): int(seq) for day, seq in fields["coarse_days"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"cannot read {path}: {error}",
            hint="Restore it from a backup, or move the folder away; other tools can read its Parquet files.",
        ) from error


def _entry(item: dict[str, object]) -> SegmentEntry:
    metrics = item.pop("metrics")
    if not isinstance(metrics, list):
        raise TypeError("metrics is not a list")
    return SegmentEntry(metrics=tuple(map(str, metrics)), **item)  # type: ignore[arg-type]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest atomically and durably."""
    write_file(folder / "manifest.json", json.dumps(asdict(manifest), indent=1).encode())


TRIES = 20


def link_files(folder: Path, into: Path) -> None:
    """Link (copy, on another device) the store's live files to ``into``, which then is a complete store.

    Raises StoreBusyError if compaction changed the files every time, which only happens on very slow disks.
    """
    check_version(folder)
    for _ in range(TRIES):
        before = (folder / "manifest.json").read_bytes()
        try:
            for name in _live_names(folder):
                _link(folder / name, into / name)
            is_same = (folder / "manifest.json").read_bytes() == before
        except FileNotFoundError:  # compacted away since the manifest was read
            is_same = False
        if is_same:
            (into / "manifest.json").write_bytes(before)
            return
        shutil.rmtree(into)
    raise StoreBusyError(
        f"the files of {folder} changed {TRIES} times while they were being linked", hint="Try again in a minute."
    )


def _live_names(folder: Path) -> list[str]:
    manifest = read_manifest(folder)
    recent = sorted(
        path.relative_to(folder).as_posix() for path in (folder / "recent").iterdir() if path.suffix == ".parquet"
    )
    return ["FORMAT", *(entry.file for entry in (*manifest.raw, *manifest.coarse)), *recent]


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another device, or a file system without links
        shutil.copyfile(source, target)
