"""Which format a trace file is in, from its first bytes."""

import gzip
import re
import tarfile
import zlib
from enum import StrEnum

from clusterscape.collect.traces.files import TraceFile

HEAD_BYTES = 1 << 16


class TraceFormat(StrEnum):
    """What can be read."""

    KINETO = "Kineto"
    MEGATRON = "Megatron"
    STRAGGLER = "StragglerAnalysis"
    MINDSPORE = "MindSpore"
    MINDSPORE_SCOPES = "MindSpore scope map"
    MINDSPORE_GRAPH = "MindSpore graph"
    NSIGHT = "Nsight Systems"
    CAPTURE = "capture"


def detect_format(file: TraceFile) -> TraceFormat | None:
    """The format, or None where it is none that is known."""
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
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except (zlib.error, gzip.BadGzipFile):
        return b""
