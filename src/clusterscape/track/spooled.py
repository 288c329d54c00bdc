"""Reads runs recorded on this machine; closes runs whose tracker was killed, and redacts runs of older versions before upload."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clusterscape.errors import NotFoundError
from clusterscape.model.run_frames import FrameKind, decode_event, decode_samples, encode_event, iter_frames
from clusterscape.track.places import LOCK_FILE, runs_folder
from clusterscape.track.redaction import Redactor
from clusterscape.track.reproduce import select_variables

if TYPE_CHECKING:
    from msgspec import Struct


_Series = tuple[str, str | None, str, str]
"""Name, unit, scope and method."""
CLOSING_FILE = "closing.spool"
ABANDONED = "its tracker was killed"


class MetricSummary(NamedTuple):
    """One series: how many samples, and the last of them."""

    name: str
    unit: str | None
    scope: str
    method: str
    samples: int
    last: float | None
    mean: float | None
    non_finite: int


class SpooledRun(NamedTuple):
    """A run as its files describe it. Times are Unix ms; None is "not yet" or "not known"."""

    run: str
    folder: Path
    state: str
    cause: str | None
    about: dict[str, object]
    params: dict[str, str]
    tags: dict[str, str]
    moments: dict[str, int]
    marks: list[dict[str, object]]
    listeners: dict[str, dict[str, object]]
    environment: dict[str, object] | None
    metrics: list[MetricSummary]
    samples: int
    bytes_on_disk: int
    is_torn: bool

    def seconds(self, begin: str, end: str) -> float | None:
        """Seconds between two times."""
        if begin not in self.moments or end not in self.moments:
            return None
        return (self.moments[end] - self.moments[begin]) / 1000

    @property
    def times_s(self) -> dict[str, float | None]:
        """Queued, at the barrier, running, flushing: each on its own."""
        return {
            "queued": self.seconds("queued", "barrier"),
            "barrier": self.seconds("barrier", "running"),
            "running": self.seconds("running", "ended"),
            "flush": self.seconds("ended", "flushed"),
        }


def spool_files(folder: Path) -> list[Path]:
    """The files of a run, in a stable order."""
    return sorted(folder.glob("*.spool"))


def list_runs(state: Path) -> list[Path]:
    """Folders of runs, newest first."""
    base = runs_folder(state)
    return sorted((path for path in base.iterdir() if path.is_dir()), reverse=True) if base.is_dir() else []


def find_run(state: Path, run: str) -> Path:
    """The folder of a run by its id, or a prefix or suffix of it."""
    matches = [path for path in list_runs(state) if path.name.startswith(run) or path.name.endswith(run)]
    if not run or not matches:
        raise NotFoundError(f"no run `{run}` on this machine", hint="`clusterscape runs list` lists runs.")
    if len(matches) > 1:
        raise NotFoundError(f"`{run}` matches {len(matches)} runs", hint="Give more characters of the id.")
    return matches[0]


def is_running(folder: Path) -> bool:
    """Whether a process still holds the run's lock."""
    try:
        fd = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def close_abandoned(folder: Path) -> bool:
    """Write the end event of a run whose tracker was killed; returns whether it was missing."""
    if is_running(folder):
        return False
    events = [event for file in spool_files(folder) for event in iter_events(file)]
    if not events or any(event["event"] == "end" for event in events):
        return False
    last_ms = int(max(file.stat().st_mtime for file in spool_files(folder)) * 1000)
    frame = encode_event({"event": "end", "state": "failed", "cause": ABANDONED, "at": last_ms, "is_closing": True})
    (folder / CLOSING_FILE).write_bytes(frame)
    return True


def iter_events(file: Path) -> Iterator[dict[str, object]]:
    """Events of one file; a damaged part is skipped."""
    for frame in iter_frames(file.read_bytes()):
        if frame.kind == FrameKind.EVENT:
            with contextlib.suppress(ValueError):
                yield decode_event(frame.payload)


def read_run(folder: Path) -> SpooledRun:
    """Read all files of a run."""
    reader = _Reader(folder.name)
    for file in spool_files(folder):
        reader.read(file)
    summary, detail, end = reader.run.summary, reader.run.detail, reader.run.summary.end
    moments = {name: at for name, at in _fields(summary.moments).items() if isinstance(at, int)}
    if summary.about.queued_at is not None:
        moments["queued"] = summary.about.queued_at
    state = end.state or ("running" if is_running(folder) else "failed")
    return SpooledRun(
        run=folder.name,
        folder=folder,
        state=state,
        cause=end.cause if end.state or state == "running" else ABANDONED,
        about=_fields(summary.about) | {"exit_code": end.exit_code, "exit_signal": end.exit_signal},
        params=summary.params,
        tags=summary.tags,
        moments=moments,
        marks=[{"kind": mark.kind, "name": mark.name, "at": mark.at} for mark in detail.marks],
        listeners={
            name: {"state": report.state, "message": report.message, "ticks": report.ticks, "missed": report.missed}
            for name, report in detail.listeners.items()
        },
        environment=detail.environment or None,
        metrics=reader.summaries(),
        samples=sum(reader.counts.values()),
        bytes_on_disk=sum(file.stat().st_size for file in spool_files(folder)),
        is_torn=reader.is_torn,
    )


def _fields(part: "Struct") -> dict[str, object]:
    import msgspec

    return {name: msgspec.to_builtins(getattr(part, name)) for name in part.__struct_fields__}


class _Reader:
    """Aggregates the events of a run's files, and counts their samples."""

    def __init__(self, run: str) -> None:
        from clusterscape.model.runs import new_run  # imports msgspec, which would slow down a tracked script

        self.run = new_run(run)
        self.counts: dict[_Series, int] = {}
        self._sums: dict[_Series, tuple[int, float, float, int]] = {}
        self.is_torn = False

    def read(self, file: Path) -> None:
        data = file.read_bytes()
        names: dict[int, _Series] = {}
        end = 0
        for frame in iter_frames(data):
            end = frame.end
            with contextlib.suppress(ValueError, KeyError, TypeError):  # damaged: what is whole counts
                if frame.kind == FrameKind.SAMPLES:
                    self._count(frame.payload, names)
                elif frame.kind == FrameKind.EVENT:
                    self._take(frame.payload, names)
        self.is_torn = self.is_torn or end < len(data)

    def summaries(self) -> list[MetricSummary]:
        summaries = []
        for (name, unit, scope, method), (finite, total, last, not_finite) in sorted(
            self._sums.items(), key=lambda item: (item[0][0], item[0][1] or "")
        ):
            mean, newest = (total / finite, last) if finite else (None, None)
            summaries.append(MetricSummary(name, unit, scope, method, finite + not_finite, newest, mean, not_finite))
        return summaries

    def _count(self, payload: bytes, names: dict[int, _Series]) -> None:
        columns = decode_samples(payload)
        for code, value in zip(columns.code, columns.value, strict=True):
            key = names.get(code)
            if key is None:
                continue
            finite, total, last, non_finite = self._sums.get(key, (0, 0.0, 0.0, 0))
            if value - value == 0.0:
                self._sums[key] = (finite + 1, total + value, value, non_finite)
            else:
                self._sums[key] = (finite, total, last, non_finite + 1)
            self.counts[key] = self.counts.get(key, 0) + 1

    def _take(self, payload: bytes, names: "dict[int, _Series]") -> None:
        from clusterscape.model.run_events import SeriesNamed, decode_run_event
        from clusterscape.model.run_fold import FoldLimits, fold_event

        event = decode_run_event(payload)
        if isinstance(event, SeriesNamed):
            names[event.code] = (event.name, event.unit, event.scope or "run", event.method or "measured")
        else:
            fold_event(event, self.run, FoldLimits())


def redact_spools(folder: Path) -> bool:
    """Redact secrets in the files of an ended run; returns whether there were any."""
    if is_running(folder):
        return False
    redactor = Redactor()
    changed = [_redact_file(file, redactor) for file in spool_files(folder)]
    return any(changed)


def _redact_file(file: Path, redactor: Redactor) -> bool:
    data = file.read_bytes()
    parts: list[bytes] = []
    begin = 0
    for frame in iter_frames(data):
        whole = data[begin : frame.end]
        parts.append(_redact_frame(whole, frame.payload, redactor) if frame.kind == FrameKind.EVENT else whole)
        begin = frame.end
    masked = b"".join(parts)
    if masked == data[:begin]:
        return False
    temporary = file.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_bytes(masked)
    temporary.replace(file)
    return True


def _redact_frame(whole: bytes, payload: bytes, redactor: Redactor) -> bytes:
    try:
        event = decode_event(payload)
    except ValueError:
        return whole
    masked = redactor.fields(event)
    if event["event"] == "environment" and "environ_patterns" not in event:
        environ = masked.get("environ")
        masked["environ"] = select_variables(environ) if isinstance(environ, dict) else {}
    if masked == event:
        return whole
    # Padded to its old size, because uploads resume at byte offsets.
    return encode_event(masked, min_payload_bytes=len(payload))
