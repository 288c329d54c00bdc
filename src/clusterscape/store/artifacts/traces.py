"""Reads and writes the metadata of traces."""

from contextlib import suppress

import msgspec

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model.traces import ABOUT_FILE, TRACES_PREFIX, TraceAbout, trace_key
from clusterscape.store.artifacts.contract import ArtifactReader, ArtifactStore


def write_about(artifacts: ArtifactStore, about: TraceAbout) -> None:
    """Write the metadata of a trace."""
    artifacts.put(trace_key(about.trace_id, ABOUT_FILE), [msgspec.json.encode(about)])


def read_about(artifacts: ArtifactReader, trace_id: str) -> TraceAbout:
    """The metadata of a trace. Raises ``NotFoundError``."""
    try:
        with artifacts.open(trace_key(trace_id, ABOUT_FILE)) as file:
            return msgspec.json.decode(file.read(), type=TraceAbout)
    except (NotFoundError, QueryError):
        raise NotFoundError(f"there is no trace {trace_id}", hint="`clusterscape trace list` shows them.") from None


def list_abouts(artifacts: ArtifactReader) -> list[TraceAbout]:
    """All traces, newest first."""
    traces = []
    for trace_id in artifacts.folders(TRACES_PREFIX):
        with suppress(NotFoundError):  # deleted meanwhile
            traces.append(read_about(artifacts, trace_id))
    return sorted(traces, key=lambda about: (-about.imported_at, about.trace_id))
