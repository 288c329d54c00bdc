"""Takes traces in: keeps what is sent, has it read and analyzed, and stores spans and report. The only writer of traces.

Reading happens elsewhere (``Importer``); a trace is seen by readers once all of it is stored. May be used from several threads.
"""

import logging
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError
from clusterscape.model import UnixMs
from clusterscape.model.traces import (
    ABOUT_FILE,
    TRACES_PREFIX,
    UPLOADS,
    ImportedTrace,
    TraceAbout,
    TraceState,
    trace_key,
)
from clusterscape.store.artifacts.contract import ArtifactStore
from clusterscape.store.artifacts.quota import UploadQuota
from clusterscape.store.artifacts.traces import read_about, write_about
from clusterscape.store.scratch import scratch_folder

log = logging.getLogger(__name__)

Progress = Callable[[float], None]
"""Told the share that is done, 0–1."""
Importer = Callable[[Sequence[Path], Path, Progress], ImportedTrace]
"""Reads and analyzes the traces under paths; writes files into a folder."""


class ImportLeases(Protocol):
    """Which imports some process is at, where several share the traces."""

    def take(self, name: str) -> bool:
        """Hold ``name``; False where another process does."""
        ...

    def give_back(self, name: str) -> None:
        """Hold it no more."""
        ...

    def is_free(self, name: str) -> bool:
        """Whether no living process holds ``name``."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


PIECE_BYTES = 1 << 20
PROGRESS_STEP = 0.02
"""Progress is stored when it has grown by this much: it is a file."""
SLUG_LENGTH = 16


class TraceIntake:
    """``token`` gives a few letters that make an id unique; ``on_close`` tells the importer to give up; ``scratch`` is where it
    writes before anything is stored; ``leases`` are there where several processes share the traces.
    """

    def __init__(
        self,
        artifacts: ArtifactStore,
        importer: Importer,
        *,
        clock: Callable[[], UnixMs],
        token: Callable[[], str],
        on_close: Callable[[], None] = lambda: None,
        scratch: Path | None = None,
        max_upload_bytes: int = 1 << 40,
        leases: ImportLeases | None = None,
        quota: UploadQuota | None = None,
    ) -> None:
        self.max_upload_bytes = max_upload_bytes
        self._artifacts = artifacts
        self._importer = importer
        self._clock = clock
        self._token = token
        self._scratch = scratch
        self._on_close = on_close
        self._leases = leases
        self._quota = quota
        self._settled: dict[str, UnixMs] = {}  # traces that nobody is at, by what says so, and when that was written
        self._lock = threading.Lock()
        self._running: dict[str, Future[TraceAbout]] = {}
        # Imports use all cores by themselves: one after another.
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="traces")

    def create(self, name: str, workload_id: str | None = None, *, owned_by: str | None = None) -> TraceAbout:
        """A trace whose files are still to come."""
        title = name.strip()
        if not title:
            raise QueryError("a trace needs a name", hint="Give it one of a few words.")
        about = TraceAbout(
            trace_id=f"{_slug(title)}-{self._token()}",
            name=title,
            workload_id=workload_id,
            imported_at=self._clock(),
            owned_by=owned_by,
        )
        if self._quota is not None:
            self._quota.add(owned_by, f"{TRACES_PREFIX}{about.trace_id}")
        self._write(about)
        return about

    def find(self, trace_id: str) -> TraceAbout:
        """What is known of a trace."""
        return read_about(self._artifacts, trace_id)

    def put_file(self, trace_id: str, path: str, chunks: Iterable[bytes]) -> int:
        """Keep a file of a trace that is being sent; how many bytes it has."""
        about = self.find(trace_id)
        if about.state is TraceState.READY or trace_id in self._running:
            raise QueryError(f"trace {trace_id} has been taken in already", hint="Send the files as a new trace.")
        return self._put(about, f"{UPLOADS}/{path}", chunks)

    def start(self, trace_id: str) -> TraceAbout:
        """Begin to take in what was sent, beside everything else."""
        self.find(trace_id)
        sent = self._artifacts.list(trace_key(trace_id, f"{UPLOADS}/"))
        if not sent:
            raise QueryError("no files were sent for this trace", hint="PUT them to its files/ first.")
        if self._quota is not None:
            self._quota.check_free(sum(each.size for each in sent))  # what is read of them is written there, too
        with self._lock:
            if trace_id not in self._running and self._take_lease(trace_id):
                about = replace(self.find(trace_id), state=TraceState.IMPORTING, progress=0.0, problem=None)
                self._write(about)
                paths = [self._artifacts.path(each.key) for each in sent]
                self._running[trace_id] = self._pool.submit(self._finish, about, paths)
        return self.find(trace_id)

    def wait(self, trace_id: str) -> TraceAbout:
        """Wait until an import that was started is over."""
        running = self._running.get(trace_id)
        return running.result() if running is not None else self.find(trace_id)

    def take(
        self,
        paths: Sequence[Path],
        name: str,
        workload_id: str | None = None,
        *,
        progress: Progress | None = None,
        origin_ms: float | None = None,
    ) -> TraceAbout:
        """Take in files of this machine, here and now. ``origin_ms``: when the trace is said to begin."""
        about = self.create(name, workload_id)
        self._take_lease(about.trace_id)
        try:
            return self._import(about, paths, progress, origin_ms)
        except ClusterScapeError:
            self.delete(about.trace_id)
            raise
        finally:
            self._give_lease_back(about.trace_id)

    def delete(self, trace_id: str) -> None:
        """Remove a trace and all its files. Raises ``NotFoundError``."""
        self.find(trace_id)
        # What says that the trace is there goes first: no reader finds half of it.
        self._artifacts.delete(trace_key(trace_id, ABOUT_FILE))
        for each in self._artifacts.list(trace_key(trace_id, "")):
            self._artifacts.delete(each.key)
        if self._quota is not None:
            self._quota.forget()

    def _put(self, about: TraceAbout, name: str, chunks: Iterable[bytes]) -> int:
        key = trace_key(about.trace_id, name)
        if self._quota is None:
            return self._artifacts.put(key, chunks)
        with self._quota.write(about.owned_by, f"{TRACES_PREFIX}{about.trace_id}") as bound:
            return self._artifacts.put(key, bound(chunks))

    def mark_interrupted(self) -> None:
        """Imports whose process is gone have failed; files that were being sent may still come. At the start; where several
        processes share the traces also now and then, since another one may have ended.
        """
        for each in self._artifacts.list(TRACES_PREFIX):
            is_about = each.key.count("/") == 2 and each.key.endswith(f"/{ABOUT_FILE}")
            if is_about and self._settled.get(each.key) != each.modified_at:
                try:
                    is_settled = self._settle(self.find(each.key.split("/")[1]))
                except NotFoundError:  # deleted meanwhile
                    continue
                if is_settled:
                    self._settled[each.key] = each.modified_at

    def _settle(self, about: TraceAbout) -> bool:
        """Whether nobody is at this trace. One that somebody was at, and is no more, has failed."""
        if about.state is not TraceState.IMPORTING or about.progress is None:
            return about.state is not TraceState.IMPORTING
        if about.trace_id in self._running or (self._leases is not None and not self._leases.is_free(about.trace_id)):
            return False
        problem = "the server stopped while the trace was being read; start its import again"
        self._write_if_there(replace(about, state=TraceState.FAILED, progress=None, problem=problem))
        log.warning("the import of trace %s was cut short: its process is gone", about.trace_id)
        return False

    def _take_lease(self, trace_id: str) -> bool:
        return self._leases is None or self._leases.take(trace_id)

    def _give_lease_back(self, trace_id: str) -> None:
        if self._leases is not None:
            self._leases.give_back(trace_id)

    def close(self) -> None:
        """Give up what is being read."""
        self._on_close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._leases is not None:
            self._leases.close()

    def _finish(self, about: TraceAbout, paths: Sequence[Path]) -> TraceAbout:
        """In the background: whatever happens is written down, for nobody waits."""
        try:
            return self._import_or_fail(about, paths)
        finally:
            with self._lock:
                self._running.pop(about.trace_id, None)
            self._give_lease_back(about.trace_id)

    def _import_or_fail(self, about: TraceAbout, paths: Sequence[Path]) -> TraceAbout:
        try:
            done = self._import(about, paths, None, None)
            for each in self._artifacts.list(trace_key(about.trace_id, f"{UPLOADS}/")):
                self._artifacts.delete(each.key)
        except ClusterScapeError as error:
            problem = f"{error.public_message}. {error.public_hint}" if error.hint else error.public_message
            return self._fail(about, problem)
        except Exception:
            log.exception("import of trace %s failed", about.trace_id)
            return self._fail(
                about, "it could not be read for a reason that was not foreseen; the server's log has more"
            )
        if self._quota is not None:
            self._quota.forget()
        return done

    def _fail(self, about: TraceAbout, problem: str) -> TraceAbout:
        failed = replace(about, state=TraceState.FAILED, progress=None, problem=problem)
        self._write_if_there(failed)
        return failed

    def _import(
        self, about: TraceAbout, paths: Sequence[Path], progress: Progress | None, origin_ms: float | None
    ) -> TraceAbout:
        stored = 0.0

        def tell(share: float) -> None:
            nonlocal stored
            if progress is not None:
                progress(share)
            if share - stored >= PROGRESS_STEP:
                stored = share
                self._write_if_there(replace(about, progress=min(1.0, share)))

        with scratch_folder(self._scratch or Path(tempfile.gettempdir()), "trace") as folder:
            found = self._importer(paths, folder, tell)
            for name, path in found.files.items():
                self._put(about, name, _pieces(path))
        done = replace(
            about,
            state=TraceState.READY,
            progress=None,
            problem=None,
            imported_at=self._clock(),
            format=found.format,
            ranks=found.ranks,
            steps=found.steps,
            spans=found.spans,
            extent_ns=found.extent_ns,
            origin_ms=found.origin_ms if origin_ms is None else origin_ms,
            stages=found.stages,
            notes=found.notes,
            headline=found.headline,
        )
        self._write(done)
        return done

    def _write_if_there(self, about: TraceAbout) -> None:
        """Not for a trace that was deleted meanwhile."""
        try:
            self.find(about.trace_id)
        except NotFoundError:
            return
        self._write(about)

    def _write(self, about: TraceAbout) -> None:
        write_about(self._artifacts, about)


def _slug(title: str) -> str:
    """A few of its words, for ids that can be read."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    short = words if len(words) <= SLUG_LENGTH else words[: SLUG_LENGTH + 1].rpartition("-")[0] or words[:SLUG_LENGTH]
    return short or "trace"


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
