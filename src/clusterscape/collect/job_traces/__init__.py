"""Reads recorded job histories (job traces), one file per format and an entry in ``FORMATS``; ``read_trace`` detects the format.

``cleaning``: converts the text of rows to columns, and counts dropped rows.
``delimited``: reads delimited text.
``events``: reads tables whose rows are parts of jobs.
``json_objects``: streams the objects of one list in a JSON file.
``text``: reads lines of a possibly compressed file, with limits on rows and bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterscape.collect.job_traces.alibaba import is_alibaba_2020, read_alibaba_2020
from clusterscape.collect.job_traces.cleaning import check_zone
from clusterscape.collect.job_traces.google import is_google_2011, is_google_2019, read_google_2011, read_google_2019
from clusterscape.collect.job_traces.helios import is_acme, is_helios, read_acme, read_helios
from clusterscape.collect.job_traces.lumos import is_lumos, read_lumos
from clusterscape.collect.job_traces.named_columns import is_table, read_table
from clusterscape.collect.job_traces.openb import OpenbNodes, is_openb, read_openb, read_openb_nodes
from clusterscape.collect.job_traces.philly import is_philly, read_philly
from clusterscape.collect.job_traces.sacct import is_sacct, is_sacct_json, read_sacct, read_sacct_json
from clusterscape.collect.job_traces.swf import is_swf, read_swf
from clusterscape.collect.job_traces.text import TraceSource, read_start
from clusterscape.collect.job_traces.torque import is_torque, read_torque
from clusterscape.errors import QueryError, SourceError
from clusterscape.model.jobs import JobTrace
from clusterscape.settings.limits import UploadLimits

__all__ = ["FORMATS", "JobTraceFormat", "OpenbNodes", "read_openb_nodes", "read_trace"]


@dataclass(frozen=True, slots=True)
class JobTraceFormat:
    """How a format is recognized and read. ``read`` takes the file, a name and the time zone of times without an offset."""

    matches: Callable[[str], bool]
    read: Callable[[TraceSource, str, str], JobTrace]


FORMATS: dict[str, JobTraceFormat] = {
    "sacct-json": JobTraceFormat(is_sacct_json, lambda source, name, _zone: read_sacct_json(source, name)),
    "philly": JobTraceFormat(is_philly, read_philly),
    "sacct": JobTraceFormat(is_sacct, read_sacct),
    "helios": JobTraceFormat(is_helios, read_helios),
    "acme": JobTraceFormat(is_acme, read_acme),
    "openb": JobTraceFormat(is_openb, lambda source, name, _zone: read_openb(source, name)),
    "lumos": JobTraceFormat(is_lumos, lambda source, name, _zone: read_lumos(source, name)),
    "torque": JobTraceFormat(is_torque, lambda source, name, _zone: read_torque(source, name)),
    "alibaba-2020": JobTraceFormat(is_alibaba_2020, lambda source, name, _zone: read_alibaba_2020(source, name)),
    "google-2011": JobTraceFormat(is_google_2011, lambda source, name, _zone: read_google_2011(source, name)),
    "google-2019": JobTraceFormat(is_google_2019, lambda source, name, _zone: read_google_2019(source, name)),
    "table": JobTraceFormat(is_table, read_table),
    "swf": JobTraceFormat(is_swf, lambda source, name, _zone: read_swf(source, name)),
}
"""By name. The first format that matches the start of a file is used."""


def read_trace(
    path: Path, format: str | None = None, *, timezone: str = "UTC", limits: UploadLimits | None = None
) -> JobTrace:
    """Read a job trace, compressed or not. Without ``format`` it is detected from the start of the file.

    Raises SourceError if the file cannot be read, has an unknown format or has no jobs. Invalid rows do not raise; they are
    counted in the notes of the trace. ``timezone`` applies to times without an offset. ``limits`` apply to uploaded files;
    TooLargeError states which limit is exceeded.
    """
    if format is not None and format not in FORMATS:
        raise QueryError(f"unknown trace format {format!r}", hint=f"Known formats are {', '.join(FORMATS)}.")
    check_zone(timezone)
    source = TraceSource(path, limits)
    start = read_start(source)
    if not start.strip():
        raise SourceError(f"{path} is empty", hint="A job trace has at least one line.")
    if format is None:
        format = next((name for name, candidate in FORMATS.items() if candidate.matches(start)), None)
    if format is None:
        raise SourceError(
            f"unknown format of {path}, which starts with {start.strip().splitlines()[0][:60]!r}",
            hint=f"Known formats are {', '.join(FORMATS)}, compressed or not (--format sets it).",
        )
    return FORMATS[format].read(source, path.name, timezone)
