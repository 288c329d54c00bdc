"""Detects the format of a trace file from its first bytes, and calls the readers of formats with all ranks in one file.

These readers are imported lazily, so that workers that read Kineto files start without them.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import Sequence
from enum import StrEnum

from clusterscape.collect.traces.files import TraceFile, natural_key, read_content, to_utf8
from clusterscape.errors import SourceError
from clusterscape.model.spans import Trace

HEAD_BYTES = 1 << 16


class TraceFormat(StrEnum):
    """The trace formats that can be read."""

    KINETO = "Kineto"
    MEGATRON = "Megatron"
    STRAGGLER = "StragglerAnalysis"
    MINDSPORE = "MindSpore"
    MINDSPORE_SCOPES = "MindSpore scope map"
    MINDSPORE_GRAPH = "MindSpore graph"
    NSIGHT = "Nsight Systems"
    CAPTURE = "capture"


def detect_format(file: TraceFile) -> TraceFormat | None:
    """Return the format, or None if it is unknown."""
    head = _read_head(file)
    if head[:4] == b"PAR1":
        return TraceFormat.STRAGGLER
    if head[:15] == b"SQLite format 3":
        return TraceFormat.NSIGHT
    text = head.decode("utf-8", "replace").lstrip()
    if not text.startswith(("{", "[")):
        return None
    if re.match(r'\{\s*"schema"\s*:\s*"clusterscape_capture"', text):
        return TraceFormat.CAPTURE
    if re.search(r'"maps"\s*:\s*\{\s*"device', text):
        return TraceFormat.MINDSPORE
    if re.match(r'\{\s*"scope_map"', text):
        return TraceFormat.MINDSPORE_SCOPES
    if '"parallel_type"' in text[:4096] and '"traceEvents"' not in text:
        return TraceFormat.MINDSPORE_GRAPH
    if "pp_rank" in text or re.search(r'"(?:name)"\s*:\s*"iteration begin"', text):
        return TraceFormat.MEGATRON
    if '"traceEvents"' in text or '"schemaVersion"' in text or ('"ph"' in text and '"ts"' in text):
        return TraceFormat.KINETO
    return None


def _read_head(file: TraceFile) -> bytes:
    if file.member is None:
        with file.path.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
    else:
        with tarfile.open(file.path) as archive:
            member = archive.extractfile(file.member)
            head = member.read(HEAD_BYTES) if member else b""
    if head[:2] != b"\x1f\x8b":
        return to_utf8(head)
    try:
        return to_utf8(zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES))
    except (zlib.error, gzip.BadGzipFile):
        return b""


def read_other_format(kind: TraceFormat, files: Sequence[TraceFile]) -> Trace:
    """Read files of a format other than Kineto and Nsight Systems."""
    from clusterscape.collect.traces.mindspore import parse_graph_trace

    if kind is TraceFormat.MINDSPORE:
        return _read_mindspore(files[0])
    if kind is TraceFormat.MINDSPORE_GRAPH:
        return parse_graph_trace(read_content(files[0]), files[0].title)
    if kind not in (TraceFormat.MEGATRON, TraceFormat.STRAGGLER):
        raise SourceError(f"{kind.value} files alone have no spans", hint="Give the timeline, too.")
    if len(files) > 1:
        names = ", ".join(file.title for file in files)
        raise SourceError(f"{names} are separate runs", hint="Give only one of them.")
    content, title = read_content(files[0]), files[0].title
    if kind is TraceFormat.MEGATRON:
        from clusterscape.collect.traces.megatron import parse_megatron

        return parse_megatron(content, title)
    from clusterscape.collect.traces.straggler import parse_straggler

    return parse_straggler(content, title, files[0].limits)


def _read_mindspore(file: TraceFile) -> Trace:
    """Read a timeline, with the namespaces from a file next to it."""
    from clusterscape.collect.traces.mindspore import parse_scopes, parse_timeline

    scopes: dict[str, str] = {}
    if file.member is None:
        for path in sorted(file.path.parent.glob("*scope*"), key=lambda path: natural_key(path.name)):
            scope_file = TraceFile(path, limits=file.limits)
            if path.is_file() and detect_format(scope_file) is TraceFormat.MINDSPORE_SCOPES:
                scopes |= parse_scopes(read_content(scope_file))
    return parse_timeline(read_content(file), file.title, scopes)
