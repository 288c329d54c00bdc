"""Imports traces: stores uploads, has them parsed and analyzed, and stores spans and report. The only writer of traces.

An ``Importer`` parses; readers see a trace once all of it is stored. Thread-safe.
"""

import logging
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from clusterscape.errors import ClusterScapeError, NotFoundError, QueryError, StoppedError
from clusterscape.executors import FairWorker
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
from clusterscape.store.files import scratch_folder

log = logging.getLogger(__name__)

Progress = Callable[[float], None]
"""Called with the completed share, 0–1; raises StoppedError if the trace was deleted meanwhile."""
Importer = Callable[[Sequence[Path], Path, Progress], ImportedTrace]
"""Parses and analyzes the trace files; writes results into a folder."""


class ImportLeases(Protocol):
    """Locks of running imports, for processes that share the traces."""

    def acquire(self, name: str) -> bool:
        """Acquire ``name``; False if another process holds it."""
        ...

    def release(self, name: str) -> None:
        """Release ``name``."""
        ...

    def is_free(self, name: str) -> bool:
        """Whether no running process holds ``name``."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


PIECE_BYTES = 1 << 20
PROGRESS_STEP = 0.02
"""Progress is written to its file in steps of this size."""
SLUG_LENGTH = 16


class TraceIntake:
    """Receives and imports traces. ``token`` returns a random suffix for ids; ``on_close`` cancels the importer; ``scratch``:
    folder of temporary files; ``leases``: set if several processes share the traces.
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
        self._settled: dict[str, UnixMs] = {}  # modification time of the metadata file of finished traces, by key
        self._lock = threading.Lock()
        self._about_lock = threading.Lock()
        self._running: dict[str, Future[TraceAbout]] = {}
        # One import at a time, because each uses all cores; owners in turn, because one may take an hour.
        self._worker = FairWorker("traces")

    def create(self, name: str, workload_id: str | None = None, *, owned_by: str | None = None) -> TraceAbout:
        """Create a trace whose files will be uploaded."""
        title = name.strip()
        if not title:
            raise QueryError("a trace needs a name", hint="Use a few words.")
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
        """The metadata of a trace. Raises ``NotFoundError``."""
        return read_about(self._artifacts, trace_id)

    def put_file(self, trace_id: str, path: str, chunks: Iterable[bytes]) -> int:
        """Store an uploaded file of a trace; returns its size in bytes."""
        about = self.find(trace_id)
        if about.state is TraceState.READY or trace_id in self._running:
            raise QueryError(f"trace {trace_id} is already imported", hint="Upload the files as a new trace.")
        return self._put(about, f"{UPLOADS}/{path}", chunks)

    def start(self, trace_id: str) -> TraceAbout:
        """Start to import the uploaded files in the background."""
        self.find(trace_id)
        uploads = self._artifacts.list(trace_key(trace_id, f"{UPLOADS}/"))
        if not uploads:
            raise QueryError("no files were uploaded for this trace", hint="PUT them to its files/ first.")
        if self._quota is not None:
            self._quota.check_free(sum(upload.size for upload in uploads))  # the import needs about as much space again
        with self._lock:
            if trace_id not in self._running and self._acquire_lease(trace_id):
                about = replace(self.find(trace_id), state=TraceState.IMPORTING, progress=0.0, problem=None)
                self._write(about)
                paths = [self._artifacts.path(upload.key) for upload in uploads]
                self._running[trace_id] = done = Future[TraceAbout]()
                self._worker.submit(about.owned_by or "", partial(self._finish, about, paths, done))
        return self.find(trace_id)

    def wait(self, trace_id: str) -> TraceAbout:
        """Wait until a started import has ended."""
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
        """Import local files synchronously. ``origin_ms``: overrides the start of the trace."""
        about = self.create(name, workload_id)
        self._acquire_lease(about.trace_id)
        try:
            return self._import(about, paths, progress, origin_ms)
        except ClusterScapeError:
            self.delete(about.trace_id)
            raise
        finally:
            self._release_lease(about.trace_id)

    def delete(self, trace_id: str) -> None:
        """Remove a trace and all its files. Raises ``NotFoundError``."""
        self.find(trace_id)
        # The metadata file first, so that no reader finds an incomplete trace.
        with self._about_lock:
            self._artifacts.delete(trace_key(trace_id, ABOUT_FILE))
        self._remove_files(trace_id)

    def _remove_files(self, trace_id: str) -> None:
        for artifact in self._artifacts.list(trace_key(trace_id, "")):
            self._artifacts.delete(artifact.key)
        if self._quota is not None:
            self._quota.forget()

    def _put(self, about: TraceAbout, name: str, chunks: Iterable[bytes]) -> int:
        key = trace_key(about.trace_id, name)
        if self._quota is None:
            return self._artifacts.put(key, chunks)
        with self._quota.write(about.owned_by, f"{TRACES_PREFIX}{about.trace_id}") as bound:
            return self._artifacts.put(key, bound(chunks))

    def mark_interrupted(self) -> None:
        """Mark imports whose process ended as failed; uploads may continue. Call it at the start and, if several processes
        share the traces, regularly.
        """
        for artifact in self._artifacts.list(TRACES_PREFIX):
            is_about = artifact.key.count("/") == 2 and artifact.key.endswith(f"/{ABOUT_FILE}")
            if is_about and self._settled.get(artifact.key) != artifact.modified_at:
                try:
                    is_settled = self._settle(self.find(artifact.key.split("/")[1]))
                except (NotFoundError, StoppedError):  # deleted meanwhile
                    continue
                if is_settled:
                    self._settled[artifact.key] = artifact.modified_at

    def _settle(self, about: TraceAbout) -> bool:
        """Whether no process imports this trace. An import whose process ended is marked as failed."""
        if about.state is not TraceState.IMPORTING or about.progress is None:
            return about.state is not TraceState.IMPORTING
        if about.trace_id in self._running or (self._leases is not None and not self._leases.is_free(about.trace_id)):
            return False
        problem = "the server stopped while the trace was being read; start its import again"
        self._write_if_there(replace(about, state=TraceState.FAILED, progress=None, problem=problem))
        log.warning("the import of trace %s was interrupted: its process ended", about.trace_id)
        return False

    def _acquire_lease(self, trace_id: str) -> bool:
        return self._leases is None or self._leases.acquire(trace_id)

    def _release_lease(self, trace_id: str) -> None:
        if self._leases is not None:
            self._leases.release(trace_id)

    def close(self) -> None:
        """Cancel running imports."""
        self._on_close()
        self._worker.close()
        if self._leases is not None:
            self._leases.close()

    def _finish(self, about: TraceAbout, paths: Sequence[Path], done: "Future[TraceAbout]") -> None:
        """Run an import in the background; its result or error is stored."""
        try:
            result = self._import_or_fail(about, paths)
        except BaseException as error:
            done.set_exception(error)
            raise
        finally:
            with self._lock:
                self._running.pop(about.trace_id, None)
            self._release_lease(about.trace_id)
        done.set_result(result)

    def _import_or_fail(self, about: TraceAbout, paths: Sequence[Path]) -> TraceAbout:
        try:
            done = self._import(about, paths, None, None)
            for upload in self._artifacts.list(trace_key(about.trace_id, f"{UPLOADS}/")):
                self._artifacts.delete(upload.key)
        except StoppedError:
            log.info("the import of trace %s was stopped: the trace was deleted", about.trace_id)
            self._remove_files(about.trace_id)
            return about
        except ClusterScapeError as error:
            problem = f"{error.public_message}. {error.public_hint}" if error.hint else error.public_message
            return self._fail(about, problem)
        except Exception:
            log.exception("import of trace %s failed", about.trace_id)
            return self._fail(about, "it could not be read because of an unexpected error; see the server's log")
        if self._quota is not None:
            self._quota.forget()
        return done

    def _fail(self, about: TraceAbout, problem: str) -> TraceAbout:
        failed = replace(about, state=TraceState.FAILED, progress=None, problem=problem)
        try:
            self._write_if_there(failed)
        except StoppedError:
            self._remove_files(about.trace_id)
        return failed

    def _import(
        self, about: TraceAbout, paths: Sequence[Path], progress: Progress | None, origin_ms: float | None
    ) -> TraceAbout:
        stored = 0.0

        def report(share: float) -> None:
            nonlocal stored
            if progress is not None:
                progress(share)
            if share - stored >= PROGRESS_STEP:
                stored = share
                self._write_if_there(replace(about, progress=min(1.0, share)))

        self._check_there(about)
        with scratch_folder(self._scratch or Path(tempfile.gettempdir()), "trace") as folder:
            trace = self._importer(paths, folder, report)
            for name, path in trace.files.items():
                self._put(about, name, _pieces(path))
        done = replace(
            about,
            state=TraceState.READY,
            progress=None,
            problem=None,
            imported_at=self._clock(),
            format=trace.format,
            ranks=trace.ranks,
            steps=trace.steps,
            spans=trace.spans,
            extent_ns=trace.extent_ns,
            origin_ms=trace.origin_ms if origin_ms is None else origin_ms,
            stages=trace.stages,
            notes=trace.notes,
            headline=trace.headline,
        )
        self._write_if_there(done)
        return done

    def _write_if_there(self, about: TraceAbout) -> None:
        """Write the metadata. Raises StoppedError if the trace was deleted meanwhile."""
        with self._about_lock:
            self._check_there(about)
            self._write(about)

    def _check_there(self, about: TraceAbout) -> None:
        try:
            self.find(about.trace_id)
        except NotFoundError:
            raise StoppedError(f"trace {about.trace_id} was deleted while it was being read") from None

    def _write(self, about: TraceAbout) -> None:
        write_about(self._artifacts, about)


def _slug(title: str) -> str:
    """The first words of a title, for readable ids."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    short = words if len(words) <= SLUG_LENGTH else words[: SLUG_LENGTH + 1].rpartition("-")[0] or words[:SLUG_LENGTH]
    return short or "trace"


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
