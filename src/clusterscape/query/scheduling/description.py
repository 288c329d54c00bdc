"""Job traces to describe: this cluster's own history and those uploaded, kept as artifacts; and their description.

The file is the trace: what a list shows of it is kept beside it as a document and can be read anew from it at any time.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from clusterscape.analyze.jobs.describe import TracesDescription, describe_traces
from clusterscape.errors import NotFoundError, QueryError, SourceError, StoreError, TooLargeError
from clusterscape.model import UnixMs
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.jobs import CleaningNote, JobTrace, SizeUnit
from clusterscape.model.viewers import ANYONE_HERE, Viewer
from clusterscape.query.context import QueryContext, TraceReader
from clusterscape.query.ownership import OWNER, check_owner, owner_for
from clusterscape.query.scheduling.history import FORMAT, read_history
from clusterscape.store.artifacts.contract import ArtifactStore

__all__ = ["OWN", "JobTraceList", "JobTraceQuery", "JobTraceRow", "TracesDescription"]

OWN = "cluster"
"""The id of this cluster's own history."""
KIND = "job_trace"
PREFIX = "job-traces"
KEEP_MS = 60_000
"""The description of the own history is made anew after so long: it moves with every job."""

_SIGNATURES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_SUFFIXES = re.compile(r"(\.(gz|bz2|xz|zst|csv|swf|txt|json|jsonl|log|tsv))+$", re.IGNORECASE)


@access_checked("job trace")
@dataclass(frozen=True, slots=True, kw_only=True)
class JobTraceRow:
    """A job trace in the list. ``trace``: its id; ``cluster`` is this cluster's history, of which nothing is counted ahead.

    ``notes``: what was found in its rows and done about it, with the lines of the first. ``total_units``: the machine's size.
    """

    trace: str
    name: str
    is_own: bool
    format: str
    size_unit: SizeUnit
    jobs: int | None
    dropped: int | None
    total_units: int | None
    size_bytes: int | None
    uploaded_at: int | None
    notes: list[CleaningNote]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTraceList:
    """The own history first, then uploads, newest first."""

    traces: list[JobTraceRow]


class JobTraceQuery:
    """Questions about job traces."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context

    def all(self) -> JobTraceList:
        """Every trace there is."""
        found = [_row(document.key, document.body) for document in self._context.records.documents(KIND)]
        found.sort(key=lambda row: (-(row.uploaded_at or 0), row.trace))
        return JobTraceList(traces=[self._own(), *found])

    def upload(
        self,
        name: str,
        chunks: Iterable[bytes],
        *,
        format: str | None = None,
        timezone: str = "UTC",
        total_units: int | None = None,
        by: Viewer = ANYONE_HERE,
    ) -> JobTraceRow:
        """Keep a file, read it and tell what was found in it. A file that is no job trace is not kept: QueryError says why.

        ``total_units``: the machine's size, where the file does not say it.
        """
        artifacts, _ = self._need()
        owner = owner_for(by)
        pieces = iter(chunks)
        first = next(pieces, b"")
        label, suffix = _split_name(name)
        compression = next((ending for start, ending in _SIGNATURES.items() if first.startswith(start)), "")
        trace_id = f"{label}-{hashlib.sha256(first + str(self._now()).encode()).hexdigest()[:8]}"
        key = f"{PREFIX}/{trace_id}/{label}{suffix}{compression}"
        size = self._keep(artifacts, key, chain([first], pieces), owner)
        body: dict[str, Any] = {"name": label, "key": key, "size_bytes": size, "total_units": total_units}
        body |= {"asked_format": format, "timezone": timezone}
        try:
            trace = self._read(body)
        except TooLargeError as error:
            self._discard(artifacts, key)
            message = _replace_path(error.message, name)
            raise TooLargeError(message, setting=error.setting, hint=error.advice) from None
        except (SourceError, QueryError) as error:
            self._discard(artifacts, key)
            message = _replace_path(error.message, name).removeprefix(name).lstrip(" :")
            raise QueryError(f"{name} cannot be read as a job trace: {message}", hint=error.hint) from None
        except BaseException:
            self._discard(artifacts, key)
            raise
        body |= {"format": trace.format, "size_unit": trace.size_unit, "jobs": len(trace), "dropped": trace.dropped}
        body |= {"total_units": trace.total, "notes": [asdict(note) for note in trace.notes]}
        body |= {"uploaded_at": self._now(), OWNER: owner}
        self._context.records.write_document(KIND, trace_id, body, at_ms=body["uploaded_at"])
        return _row(trace_id, body)

    def _keep(self, artifacts: ArtifactStore, key: str, chunks: Iterable[bytes], owner: str | None) -> int:
        quota = self._context.quota
        if quota is None:
            return artifacts.put(key, chunks)
        with quota.write(owner, is_new=True) as bound:
            return artifacts.put(key, bound(chunks))

    def _discard(self, artifacts: ArtifactStore, key: str) -> None:
        artifacts.delete(key)
        if self._context.quota is not None:
            self._context.quota.forget()

    def remove(self, trace_id: str, *, by: Viewer = ANYONE_HERE) -> None:
        """Forget an uploaded trace and its file."""
        if trace_id == OWN:
            raise QueryError("this cluster's own history cannot be removed", hint="Only uploaded traces can.")
        body = self._find(trace_id)
        check_owner(body.get(OWNER), by, f"the job trace {trace_id}")
        artifacts, _ = self._need()
        self._context.records.remove_document(KIND, trace_id)
        self._discard(artifacts, str(body["key"]))

    def check(self, trace_id: str) -> None:
        """Raise NotFoundError where there is no such trace."""
        if trace_id != OWN:
            self._find(trace_id)

    def trace(self, trace_id: str) -> JobTrace:
        """The jobs of a trace, read anew."""
        if trace_id == OWN:
            return read_history(self._context.records, name=self._context.cluster, now_ms=self._now())
        return self._read(self._find(trace_id))

    def description(self, trace_id: str, compare: Sequence[str] = (), *, timezone: str = "UTC") -> TracesDescription:
        """One to four traces described side by side. The own history is at most a minute old."""
        ids = list(dict.fromkeys([trace_id, *compare]))
        versions = tuple(
            self._now() // KEEP_MS if each == OWN else str(self._find(each).get("uploaded_at")) for each in ids
        )

        def describe() -> TracesDescription:
            return describe_traces(_name_apart([self.trace(each) for each in ids]), timezone=timezone)

        return self._context.cache.get(("job-traces", *ids, timezone), versions, describe)

    def _own(self) -> JobTraceRow:
        return JobTraceRow(
            trace=OWN,
            name=self._context.cluster,
            is_own=True,
            format=FORMAT,
            size_unit="gpus",
            jobs=None,
            dropped=None,
            total_units=None,
            size_bytes=None,
            uploaded_at=None,
            notes=[],
        )

    def _now(self) -> UnixMs:
        return self._context.clock()

    def _need(self) -> tuple[ArtifactStore, TraceReader]:
        artifacts, read = self._context.artifacts, self._context.read_job_trace
        if artifacts is None or read is None:
            raise StoreError(
                "this server keeps no job traces", hint="Ask one that was started with `clusterscape serve`."
            )
        return artifacts, read

    def _find(self, trace_id: str) -> dict[str, Any]:
        document = self._context.records.document(KIND, trace_id)
        if document is None:
            raise NotFoundError(f"there is no job trace {trace_id!r}", hint="GET /api/v1/job-traces lists them.")
        return dict(document.body)

    def _read(self, body: dict[str, Any]) -> JobTrace:
        artifacts, read = self._need()
        trace = read(artifacts.path(str(body["key"])), body["asked_format"], body["timezone"])
        return replace(trace, name=body["name"], total=trace.total or body["total_units"])


def _name_apart(traces: Sequence[JobTrace]) -> list[JobTrace]:
    """Claims and charts speak of traces by name: the second of the same name is called (2)."""
    seen: dict[str, int] = {}
    apart = []
    for trace in traces:
        seen[trace.name] = count = seen.get(trace.name, 0) + 1
        apart.append(trace if count == 1 else replace(trace, name=f"{trace.name} ({count})"))
    return apart


def _replace_path(message: str, name: str) -> str:
    """Readers name the file they read; who uploads knows another name, and nobody outside has to know where files are."""
    return re.sub(r"\S*/" + PREFIX + r"/\S+?(?=[\s:,]|$)", lambda _: name, message)


def _row(trace_id: str, body: Any) -> JobTraceRow:
    return JobTraceRow(
        trace=trace_id,
        name=body["name"],
        is_own=False,
        format=body["format"],
        size_unit=body["size_unit"],
        jobs=body["jobs"],
        dropped=body["dropped"],
        total_units=body["total_units"],
        size_bytes=body["size_bytes"],
        uploaded_at=body["uploaded_at"],
        notes=[CleaningNote(**(note | {"lines": tuple(note["lines"])})) for note in body["notes"]],
    )


def _split_name(name: str) -> tuple[str, str]:
    """A label that can be part of a key and of an address, and the file's ending without compression, which its content tells."""
    base = name.replace("\\", "/").rpartition("/")[2].strip()
    found = _SUFFIXES.search(base)
    label = re.sub(r"[^\w.+=@-]+", "-", base[: found.start()] if found else base).strip("-.")[:80]
    suffix = re.sub(r"\.(gz|bz2|xz|zst)", "", found.group().lower()) if found else ""
    return label or "trace", suffix
