"""Batches of samples that wait on disk while a metrics server is away, oldest first. Sends nothing itself.

Every batch is one file, synced before ``put`` returns. Beyond ``max_bytes`` the oldest batches go, and are counted.
"""

import io
import threading
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from clusterscape.model import SampleBatch
from clusterscape.store.metrics.embedded.files import TEMPORARY_SUFFIX, make_folder, storage_errors, write_file
from clusterscape.store.metrics.frames import batch_of, frame_of

_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class _Waiting:
    seq: int
    size_bytes: int
    samples: int

    @property
    def name(self) -> str:
        # The number of samples is in the name: counting them must not cost reading them.
        return f"{self.seq:012d}-{self.samples}{_SUFFIX}"


class SampleSpool:
    """A queue of batches. Thread-safe; one process at a time."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._waiting = self._find()
        self._next = max((each.seq for each in self._waiting), default=0) + 1
        self.dropped_samples = 0
        """Lost since the start, because too much waited."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def samples(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(each.samples for each in self._waiting)

    def put(self, batch: SampleBatch) -> int:
        """Append ``batch`` durably; returns how many older samples had to go for it."""
        if not len(batch):
            return 0
        buffer = io.BytesIO()
        frame_of(batch).write_parquet(buffer, compression="zstd", compression_level=1, statistics=False)
        content = buffer.getvalue()
        with self._lock:
            new = _Waiting(self._next, len(content), len(batch))
            self._next += 1
            dropped = 0
            while self._waiting and sum(each.size_bytes for each in self._waiting) + len(content) > self._max_bytes:
                oldest = self._waiting.pop(0)
                (self._folder / oldest.name).unlink(missing_ok=True)
                dropped += oldest.samples
            make_folder(self._folder)
            write_file(self._folder / new.name, content)
            self._waiting.append(new)
            self.dropped_samples += dropped
            return dropped

    def first(self) -> tuple[int, SampleBatch] | None:
        """The oldest batch and its number; None where nothing waits. A damaged file is counted as dropped and left out."""
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                oldest = self._waiting[0]
            try:
                return oldest.seq, batch_of(pl.read_parquet(io.BytesIO((self._folder / oldest.name).read_bytes())))
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
                with self._lock:
                    if oldest in self._waiting:  # else it had to go for a newer one meanwhile
                        self.dropped_samples += oldest.samples
                self.remove(oldest.seq)

    def remove(self, seq: int) -> None:
        """Forget a batch, because it was sent."""
        with self._lock:
            for each in [each for each in self._waiting if each.seq == seq]:
                self._waiting.remove(each)
                with storage_errors(self._folder):
                    (self._folder / each.name).unlink(missing_ok=True)

    def _find(self) -> list[_Waiting]:
        found = []
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            seq, _, samples = path.stem.partition("-")
            if path.suffix == _SUFFIX and seq.isdecimal() and samples.isdecimal():
                found.append(_Waiting(int(seq), path.stat().st_size, int(samples)))
            elif path.name.endswith(TEMPORARY_SUFFIX):
                path.unlink(missing_ok=True)
        return sorted(found, key=lambda each: each.seq)
