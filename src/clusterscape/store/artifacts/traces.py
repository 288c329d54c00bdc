"""The small document that says what is known of a trace, and the list of all of them."""

import msgspec

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model.traces import ABOUT_FILE, TRACES_PREFIX, TraceAbout, trace_key
from clusterscape.store.artifacts.contract import ArtifactStore


def write_about(artifacts: ArtifactStore, about: TraceAbout) -> None:
    """Keep what is known of a trace."""
    artifacts.put(trace_key(about.trace_id, ABOUT_FILE), [msgspec.json.encode(about)])


def read_about(artifacts: ArtifactStore, trace_id: str) -> TraceAbout:
    """What is known of a trace. Raises ``NotFoundError``."""
    try:
        with artifacts.open(trace_key(trace_id, ABOUT_FILE)) as file:
            return msgspec.json.decode(file.read(), type=TraceAbout)
    except (NotFoundError, QueryError):
        raise NotFoundError(f"there is no trace {trace_id}", hint="`clusterscape trace list` shows them.") from None


def list_abouts(artifacts: ArtifactStore) -> list[TraceAbout]:
    """All traces, newest first."""
    found = []
    for each in artifacts.list(TRACES_PREFIX):
        if each.key.count("/") == 2 and each.key.endswith(f"/{ABOUT_FILE}"):
            try:
                found.append(read_about(artifacts, each.key.split("/")[1]))
            except NotFoundError:  # deleted meanwhile
                continue
    return sorted(found, key=lambda about: (-about.imported_at, about.trace_id))
