"""Packs recorded cases into a few files of limited size, and unpacks them: for cases that are recorded on another machine.

Traces are cut to the fields that are read (no flow events, no launch geometry), times rounded to 0.1 µs, and compressed with xz.
"""

import gzip
import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

MAX_FILE_BYTES = 15 << 20
MAX_FILES = 8
MAX_BYTES = 60 << 20
KEPT_ARGUMENTS = (
    "correlation", "bytes", "stream", "Input Dims", "Input type", "Concrete Inputs", "Collective name",
    "Process Group Name", "In msg nelems", "dtype", "Seq", "Src Rank", "Dst Rank",
)  # fmt: skip
DROPPED = ("traceEvents", "deviceProperties")
WITH_SETTINGS = ("conv", "attention")


def cut_trace(data: bytes) -> bytes:
    """A Kineto file with what is read of it."""
    document = json.loads(data)
    events = [_cut_event(event) for event in document["traceEvents"] if event.get("ph") == "X"]
    kept = {name: value for name, value in document.items() if name not in DROPPED}
    devices = [{"name": device.get("name")} for device in document.get("deviceProperties", [])[:1]]
    return json.dumps(kept | {"deviceProperties": devices, "traceEvents": events}, separators=(",", ":")).encode()


def _cut_event(event: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in event.get("args", {}).items() if name in KEPT_ARGUMENTS}
    name = str(event.get("name"))
    if not any(part in name for part in WITH_SETTINGS):
        arguments.pop("Concrete Inputs", None)
    cut: dict[str, Any] = {key: event[key] for key in ("ph", "cat", "name", "pid", "tid") if key in event}
    cut |= {"ts": round(float(event["ts"]), 1), "dur": round(float(event["dur"]), 1)}
    return cut | ({"args": arguments} if arguments else {})


def pack_trace(path: Path) -> bytes:
    """Cut and compress one trace, and remove the file."""
    data = path.read_bytes()
    path.unlink()
    return lzma.compress(cut_trace(gzip.decompress(data) if path.suffix == ".gz" else data), preset=4)


class CaseArchive:
    """Writes cases into ``FOLDER/faults-N.tar`` while others are recorded."""

    def __init__(self, folder: Path, workers: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._pool = ProcessPoolExecutor(workers)
        self._waiting: list[tuple[Path, list[tuple[str, Future[bytes]]], list[Path]]] = []
        self._files = 0
        self._stream: BinaryIO | None = None
        self._tar: tarfile.TarFile | None = None
        self._path = folder
        self.written_bytes = 0

    def add(self, case: Path) -> None:
        """Pack a case, named by its JSON."""
        document = json.loads(case.read_text())
        traces, others = [], [case]
        for file in document["files"]:
            path = case.parent / file["path"]
            if file["format"] == "kineto":
                traces.append((f"{path.name.removesuffix('.gz')}.xz", self._pool.submit(pack_trace, path)))
            else:
                others.append(path)
        self._waiting.append((case, traces, others))
        self._write([entry for entry in self._waiting if all(packed.done() for _, packed in entry[1])])

    @property
    def is_full(self) -> bool:
        """Whether no further case fits."""
        return self.written_bytes >= MAX_BYTES

    def close(self) -> None:
        """Write what is still being packed."""
        self._write(self._waiting)
        self._pool.shutdown()
        self._close_file()

    def _close_file(self) -> None:
        if self._tar is not None:
            self._tar.close()
        if self._stream is not None:
            self._stream.close()

    def _write(self, entries: Iterable[tuple[Path, list[tuple[str, Future[bytes]]], list[Path]]]) -> None:
        for entry in list(entries):
            self._waiting.remove(entry)
            _, traces, others = entry
            members = [(name, packed.result()) for name, packed in traces]
            members += [(f"{path.name}.xz", lzma.compress(path.read_bytes())) for path in others]
            for path in others:
                path.unlink()
            size = sum(len(data) + 1024 for _, data in members)
            if self._tar is None or self._path.stat().st_size + size > MAX_FILE_BYTES:
                if self._files == MAX_FILES or self.written_bytes + size > MAX_BYTES:
                    self.written_bytes = MAX_BYTES
                    continue
                self._close_file()
                self._path = self._folder / f"faults-{self._files}.tar"
                self._stream = self._path.open("wb")
                self._tar = tarfile.open(fileobj=self._stream, mode="w")  # noqa: SIM115 - closed when it is full, or in close()
                self._files += 1
            for name, data in members:
                entry_info = tarfile.TarInfo(name)
                entry_info.size = len(data)
                self._tar.addfile(entry_info, io.BytesIO(data))
            assert self._stream is not None
            self._stream.flush()
            self.written_bytes += size


def unpack_archives(archives: Iterable[Path], folder: Path) -> int:
    """Unpack the cases of archives into a folder, with the checksums of what is written. Returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    cases: list[Path] = []
    for archive in archives:
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is None or "/" in member.name or not member.name.endswith(".json.xz"):
                    continue
                data = lzma.decompress(file.read())
                name = member.name.removesuffix(".xz")
                if "-rank" not in name:
                    cases.append(folder / name)
                elif not name.endswith((".capture.json", ".telemetry.json")):
                    name, data = f"{name}.gz", gzip.compress(data, 6, mtime=0)
                (folder / name).write_bytes(data)
    for path in cases:
        case = json.loads(path.read_text())
        for item in case["files"]:
            item["sha256"] = hashlib.sha256((folder / item["path"]).read_bytes()).hexdigest()
        path.write_text(json.dumps(case, indent=1) + "\n")
    return len(cases)
