"""Formats whose file holds all ranks: which reader takes them."""

from collections.abc import Sequence

from clusterscape.collect.traces.files import TraceFile, natural_key, read_content
from clusterscape.collect.traces.formats import TraceFormat, detect_format
from clusterscape.collect.traces.megatron import parse_megatron
from clusterscape.collect.traces.mindspore import parse_scopes, parse_timeline
from clusterscape.collect.traces.mindspore_graph import graph_alone
from clusterscape.collect.traces.straggler import parse_straggler
from clusterscape.errors import SourceError
from clusterscape.model.spans import Trace


def read_other(kind: TraceFormat, files: Sequence[TraceFile]) -> Trace:
    """The trace of files of one format that is not Kineto's."""
    if kind is TraceFormat.MINDSPORE:
        return _read_mindspore(files[0])
    if kind is TraceFormat.MINDSPORE_GRAPH:
        return graph_alone(read_content(files[0]), files[0].title)
    if kind not in (TraceFormat.MEGATRON, TraceFormat.STRAGGLER):
        raise SourceError(f"{kind.value} files alone hold no spans", hint="Name the timeline beside it, too.")
    if len(files) > 1:
        names = ", ".join(file.title for file in files)
        raise SourceError(f"each of {names} is a run of its own", hint="Name one of them.")
    content, title = read_content(files[0]), files[0].title
    if kind is TraceFormat.MEGATRON:
        return parse_megatron(content, title)
    return parse_straggler(content, title, files[0].limits)


def _read_mindspore(file: TraceFile) -> Trace:
    """Namespaces lie in a file of their own, beside the timeline."""
    scopes: dict[str, str] = {}
    if file.member is None:
        for beside in sorted(file.path.parent.glob("*scope*"), key=lambda path: natural_key(path.name)):
            other = TraceFile(beside, limits=file.limits)
            if detect_format(other) is TraceFormat.MINDSPORE_SCOPES:
                scopes |= parse_scopes(read_content(other))
    return parse_timeline(read_content(file), file.title, scopes)
