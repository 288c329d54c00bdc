"""Which files the embedded store consists of: format version, lock, and the manifest that switches them atomically.

A segment lives only while the manifest names it, and a recent file only while its number is above ``compacted_seq``; so one
rename of the manifest puts new segments in the place of old files, and a crash before or after it loses and doubles nothing.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from clusterscape.errors import StoreError, StoreVersionError
from clusterscape.store.locks import hold_lock
from clusterscape.store.metrics.embedded.files import write_file

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEntry:
    """What the manifest knows of one segment file."""

    file: str  # relative to the store's folder
    seq: int  # number of the last write in it: the later of two equal samples has the higher one
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
    raw_from_ms: int = 0  # before this time only coarse values are left
    raw: tuple[SegmentEntry, ...] = ()
    coarse: tuple[SegmentEntry, ...] = ()
    coarse_days: dict[int, int] = field(default_factory=dict)  # day number → seq its coarse values take in

    @property
    def last_seq(self) -> int:
        """The highest number given to a write so far, as far as segments tell."""
        return max([self.compacted_seq, *(entry.seq for entry in self.raw), *self.coarse_days.values()])


def check_version(folder: Path) -> None:
    """Refuse a folder that a newer version has written. Touches nothing."""
    path = folder / "FORMAT"
    if not path.exists():
        return
    words = path.read_text(encoding="ascii", errors="replace").split()
    version = words[1] if len(words) == 2 and words[0] == "clusterscape-metrics" else ""
    if not version.isdecimal():
        raise StoreError(
            f"{path} does not name a format version", hint="Give `storage.data_dir` a folder of ClusterScape's own."
        )
    if int(version) > FORMAT_VERSION:
        raise StoreVersionError(
            f"{folder} has format {version}, this version of ClusterScape knows formats up to {FORMAT_VERSION}",
            hint="Start the newer version again, or give `storage.data_dir` another folder.",
        )


def create(folder: Path) -> None:
    """Make ``folder`` an empty store of this version's format, unless it is one already."""
    path = folder / "FORMAT"
    if not path.exists():
        write_manifest(folder, Manifest())
        write_file(path, f"clusterscape-metrics {FORMAT_VERSION}\n".encode("ascii"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the store against other processes (and other stores of this process)."""
    with hold_lock(folder / "lock", guards=folder):
        yield


def read_manifest(folder: Path) -> Manifest:
    """The manifest of ``folder``."""
    path = folder / "manifest.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return Manifest(
            compacted_seq=int(known["compacted_seq"]),
            raw_from_ms=int(known["raw_from_ms"]),
            raw=tuple(_entry(item) for item in known["raw"]),
            coarse=tuple(_entry(item) for item in known["coarse"]),
            coarse_days={int(day): int(seq) for day, seq in known["coarse_days"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}",
            hint="Restore it from a backup, or move the folder away; its Parquet files stay readable by other tools.",
        ) from error


def _entry(item: dict[str, object]) -> SegmentEntry:
    metrics = item.pop("metrics")
    if not isinstance(metrics, list):
        raise TypeError("metrics is not a list")
    return SegmentEntry(metrics=tuple(map(str, metrics)), **item)  # type: ignore[arg-type]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Switch the store to ``manifest``, atomically and durably."""
    write_file(folder / "manifest.json", json.dumps(asdict(manifest), indent=1).encode())
