"""Recorded histories of jobs, one file per format; ``read_trace`` finds out which one a file is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterscape.collect.job_traces.acme import is_acme, read_acme
from clusterscape.collect.job_traces.helios import is_helios, read_helios
from clusterscape.collect.job_traces.lumos import is_lumos, read_lumos
from clusterscape.collect.job_traces.openb import OpenbNodes, is_openb, read_openb, read_openb_nodes
from clusterscape.collect.job_traces.philly import is_philly, read_philly
from clusterscape.collect.job_traces.sacct import is_sacct, read_sacct
from clusterscape.collect.job_traces.sacct_json import is_sacct_json, read_sacct_json
from clusterscape.collect.job_traces.swf import is_swf, read_swf
from clusterscape.collect.job_traces.text import TraceSource, read_start
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.jobs import JobTrace
from clusterscape.settings.limits import UploadLimits

__all__ = ["FORMATS", "OpenbNodes", "TraceFormat", "read_openb_nodes", "read_trace"]


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """How a format is recognized and read. ``read`` takes the file, a name and the zone of times without an offset."""

    matches: Callable[[str], bool]
    read: Callable[[TraceSource, str, str], JobTrace]


FORMATS: dict[str, TraceFormat] = {
    "sacct-json": TraceFormat(is_sacct_json, lambda source, name, _zone: read_sacct_json(source, name)),
    "philly": TraceFormat(is_philly, read_philly),
    "sacct": TraceFormat(is_sacct, read_sacct),
    "helios": TraceFormat(is_helios, read_helios),
    "acme": TraceFormat(is_acme, read_acme),
    "openb": TraceFormat(is_openb, lambda source, name, _zone: read_openb(source, name)),
    "lumos": TraceFormat(is_lumos, lambda source, name, _zone: read_lumos(source, name)),
    "swf": TraceFormat(is_swf, lambda source, name, _zone: read_swf(source, name)),
}
"""By name; a file is taken for the first that matches its beginning."""


def read_trace(
    path: Path, format: str | None = None, *, timezone: str = "UTC", limits: UploadLimits | None = None
) -> JobTrace:
    """Read a job trace, compressed or not; without ``format`` the file's beginning decides.

    Raises SourceError where the file cannot be read, is of no known format or holds no job; wrong rows do not
    raise, they are counted in the trace's notes. ``timezone``: of times that carry no offset. ``limits``: of a file that
    somebody else sent; TooLargeError says which one it is beyond.
    """
    if format is not None and format not in FORMATS:
        raise QueryError(f"there is no trace format {format!r}", hint=f"There are {', '.join(FORMATS)}.")
    source = TraceSource(path, limits)
    start = read_start(source)
    if not start.strip():
        raise SourceError(f"{path} is empty", hint="A job trace has at least one line.")
    if format is None:
        format = next((name for name, one in FORMATS.items() if one.matches(start)), None)
    if format is None:
        raise SourceError(
            f"{path} is of no known format; it begins with {start.splitlines()[0][:60]!r}",
            hint=f"Known are {', '.join(FORMATS)}, as files or compressed.",
        )
    return FORMATS[format].read(source, path.name, timezone)
