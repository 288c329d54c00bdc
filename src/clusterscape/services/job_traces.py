"""Uploads and deletes job traces: the file is an artifact, what lists show of it is a document."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain
from typing import Any

from clusterscape.errors import QueryError, SourceError, TooLargeError
from clusterscape.model.access import LOCAL_ADMIN, Viewer
from clusterscape.query.ownership import OWNER, check_owner, owner_for
from clusterscape.query.scheduling.description import (
    KIND,
    OWN,
    PREFIX,
    JobTraceQuery,
    JobTraceRow,
    describe_upload,
    missing_store_error,
)
from clusterscape.services.context import ServiceContext
from clusterscape.store.artifacts.contract import ArtifactStore

_SIGNATURES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_SUFFIXES = re.compile(r"(\.(gz|bz2|xz|zst|csv|swf|txt|json|jsonl|log|tsv))+$", re.IGNORECASE)


class JobTraceKeeper:
    """Uploads of job traces."""

    def __init__(self, context: ServiceContext, traces: JobTraceQuery) -> None:
        self._context = context
        self._traces = traces

    def upload(
        self,
        name: str,
        chunks: Iterable[bytes],
        *,
        format: str | None = None,
        timezone: str = "UTC",
        total_units: int | None = None,
        by: Viewer = LOCAL_ADMIN,
    ) -> JobTraceRow:
        """Stores and reads a file. A file that is not a job trace is not stored, and raises QueryError.

        ``total_units``: the cluster's size, if the file does not contain it.
        """
        artifacts = self._require_store()
        owner = owner_for(by)
        now = self._context.reads.clock()
        pieces = iter(chunks)
        first = next(pieces, b"")
        label, suffix = _split_name(name)
        compression = next((ending for start, ending in _SIGNATURES.items() if first.startswith(start)), "")
        trace_id = f"{label}-{hashlib.sha256(first + str(now).encode()).hexdigest()[:8]}"
        key = f"{PREFIX}/{trace_id}/{label}{suffix}{compression}"
        size = self._store(artifacts, key, chain([first], pieces), owner)
        body: dict[str, Any] = {"name": label, "key": key, "size_bytes": size, "total_units": total_units}
        body |= {"asked_format": format, "timezone": timezone}
        try:
            trace = self._traces.read(body)
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
        body |= {"uploaded_at": self._context.reads.clock(), OWNER: owner}
        self._context.write_document(KIND, trace_id, body, at_ms=body["uploaded_at"])
        return describe_upload(trace_id, body)

    def _store(self, artifacts: ArtifactStore, key: str, chunks: Iterable[bytes], owner: str | None) -> int:
        quota = self._context.quota
        if quota is None:
            return artifacts.put(key, chunks)
        with quota.write(owner, is_new=True) as bound:
            return artifacts.put(key, bound(chunks))

    def _discard(self, artifacts: ArtifactStore, key: str) -> None:
        artifacts.delete(key)
        if self._context.quota is not None:
            self._context.quota.forget()

    def remove(self, trace_id: str, *, by: Viewer = LOCAL_ADMIN) -> None:
        """Deletes an uploaded trace and its file."""
        if trace_id == OWN:
            raise QueryError("the history of this cluster cannot be deleted", hint="Only uploaded traces can.")
        body = self._traces.find(trace_id)
        check_owner(body.get(OWNER), by, f"job trace {trace_id}")
        artifacts = self._require_store()
        self._context.remove_document(KIND, trace_id)
        self._discard(artifacts, str(body["key"]))

    def _require_store(self) -> ArtifactStore:
        if self._context.artifacts is None or self._context.reads.read_job_trace is None:
            raise missing_store_error()
        return self._context.artifacts


def _replace_path(message: str, name: str) -> str:
    """Replaces the server's path in a reader's message by the uploaded name, so that no paths are disclosed."""
    return re.sub(r"\S*/" + PREFIX + r"/\S+?(?=[\s:,]|$)", lambda _: name, message)


def _split_name(name: str) -> tuple[str, str]:
    """A label that is valid in keys and URLs, and the file suffix without that of compression, which is detected by content."""
    base = name.replace("\\", "/").rpartition("/")[2].strip()
    match = _SUFFIXES.search(base)
    label = re.sub(r"[^\w.+=@-]+", "-", base[: match.start()] if match else base).strip("-.")[:80]
    suffix = re.sub(r"\.(gz|bz2|xz|zst)", "", match.group().lower()) if match else ""
    return label or "trace", suffix
