"""Questions about exporters that could not be matched to a node with certainty, each with a proposed setting. Stores matches,
questions and other host names of nodes as documents.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import msgspec

from clusterscape.ingest.exporter_labels import ExporterNames
from clusterscape.ingest.exporter_matching import ExporterMatcher, MatchKind, NodeMatch
from clusterscape.ingest.node_names import shorten, split_address
from clusterscape.model import NodeId, UnitId, UnixMs
from clusterscape.model.inventory import EXPORTER_QUESTIONS, EXPORTER_TIES, HOST_NAMES, NameQuestion
from clusterscape.store.records.contract import RecordStore

MAX_QUESTIONS = 100
NAMED_NODES = 5
UNKNOWN_NODE = "NODE"
"""Placeholder in the proposed setting if no node can be proposed."""

DuplicateUnits = Mapping[ExporterNames, Mapping[UnitId, UnitId]]
"""Units that are not counted because another exporter reports the same GPU on another node, by exporter: unit → counted unit."""


def find_questions(matcher: ExporterMatcher, duplicates: DuplicateUnits) -> list[NameQuestion]:
    """All open questions, by exporter."""
    unmatched = matcher.nodes_without_exporter()
    proposals = propose_nodes(matcher, unmatched)
    questions = []
    for names, match in matcher.matches.items():
        problem = _find_problem(names, match, matcher, unmatched)
        proposed: NodeId | None = match.node
        if match.kind is MatchKind.OPEN:
            proposed = proposals.get(names)
        elif match.kind is MatchKind.SETTING:
            proposed = _find_close(match.node, unmatched)
        elif problem is None and names in duplicates:
            unit, home = next(iter(duplicates[names].items()))
            gpus = "1 GPU" if len(duplicates[names]) == 1 else f"{len(duplicates[names])} GPUs"
            problem = f"reports the same GPU as {home}, as {unit} ({gpus} counted once)"
            proposed = NodeId(str(home).partition(":")[0])
        if problem is not None:
            questions.append(_question(names, match, problem, proposed, len(matcher.reported_by(names).uuids)))
    return sorted(questions, key=lambda question: natural(question.exporter))[:MAX_QUESTIONS]


def propose_nodes(matcher: ExporterMatcher, unmatched: Sequence[NodeId]) -> dict[ExporterNames, NodeId]:
    """The most likely node of each unmatched exporter: by the number in its name, or in order if equally many are left."""
    open_exporters = sorted(
        (names for names, match in matcher.matches.items() if match.kind is MatchKind.OPEN), key=_sort_key
    )
    left = sorted(unmatched, key=natural)
    proposals: dict[ExporterNames, NodeId] = {}
    for names in open_exporters:
        same_number = [node for node in matcher.find_candidates(names, left) if _has_same_number(names, node)]
        if len(same_number) == 1:
            proposals[names] = same_number[0]
            left.remove(same_number[0])
    rest = [names for names in open_exporters if names not in proposals]
    if len(rest) == len(left) and all(
        node in matcher.find_candidates(names, left) for names, node in zip(rest, left, strict=True)
    ):
        proposals.update(zip(rest, left, strict=True))
    for names in rest:
        fitting = matcher.find_candidates(names, left)
        if names not in proposals and len(fitting) == 1:
            proposals[names] = fitting[0]
    return proposals


def natural(text: str) -> list[tuple[int, str]]:
    """Sort key that puts ``gpu10`` after ``gpu9``."""
    return [(int(digits or 0), word) for word, digits in re.findall(r"(\D*)(\d*)", text)]


def _find_problem(
    names: ExporterNames, match: NodeMatch, matcher: ExporterMatcher, unmatched: Sequence[NodeId]
) -> str | None:
    called = f'reports host name "{names.host}"' if names.host else "reports no host name"
    if match.rivals:
        other = match.rivals[0]
        return f"{called}, like {_name_of(other)}, but reports different GPUs"
    if match.kind is MatchKind.OPEN:
        fitting = matcher.find_candidates(names, unmatched)
        choice = ", ".join(fitting[:NAMED_NODES]) + (" …" if len(fitting) > NAMED_NODES else "")
        return f"{called}, which is not a node of any scheduler; it may be {choice}, without an exporter so far"
    if match.kind is MatchKind.OWN and matcher.nodes:
        return f"{called}, which is not a node of any scheduler; it is shown as a separate node"
    if match.kind is MatchKind.SETTING and match.node not in matcher.nodes and matcher.nodes:
        close = _find_close(match.node, unmatched)
        is_own = match.node in {
            shorten(split_address(name)) for name in (names.host, names.node, names.address) if name
        }
        return (
            None
            if close is None or is_own
            else f'is configured as "{match.node}", which is not a node of any scheduler'
        )
    if match.address_node is not None:
        return f"is scraped at {match.address_node} but {called}; both are nodes, and it is matched to {match.node}"
    return None


def _question(names: ExporterNames, match: NodeMatch, problem: str, proposed: NodeId | None, gpus: int) -> NameQuestion:
    key = names.address or names.host or names.node or match.node
    return NameQuestion(
        exporter=_name_of(names),
        host_name=names.host,
        gpus=gpus,
        problem=problem,
        proposed=proposed,
        setting=f"{_quote(key)} = {_quote(proposed or UNKNOWN_NODE)}",
        is_counted=match.is_counted,
    )


def _name_of(names: ExporterNames) -> str:
    return names.address or names.host or names.node or names.configured or "an exporter"


def _sort_key(names: ExporterNames) -> list[tuple[int, str]]:
    return natural(_name_of(names))


def _has_same_number(names: ExporterNames, node: NodeId) -> bool:
    """Whether the last number in a name of the exporter, without its port, equals that of the node."""
    wanted = _last_number(shorten(node))
    hosts = [shorten(split_address(name)) for name in (names.node, names.host, names.address) if name]
    return wanted is not None and wanted in {_last_number(host) for host in hosts}


def _last_number(text: str) -> int | None:
    numbers = re.findall(r"\d+", text)
    return int(numbers[-1]) if numbers else None


def _find_close(node: NodeId, unmatched: Sequence[NodeId]) -> NodeId | None:
    close = difflib.get_close_matches(node, unmatched, n=1, cutoff=0.75)
    return NodeId(close[0]) if close else None


def _quote(text: str) -> str:
    """A TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'


class MatchRecords:
    """Reads and writes the documents of one collector. Writes only changes."""

    def __init__(self, records: RecordStore, shard: str) -> None:
        self._records = records
        self._shard = shard
        self._written: dict[tuple[str, str], bytes] = {}

    def read_host_names(self) -> dict[NodeId, Sequence[str]]:
        """Other host names of nodes, as stored by all processes."""
        host_names: dict[NodeId, Sequence[str]] = {}
        for document in self._records.documents(HOST_NAMES):
            for node, names in document.body.items():
                if isinstance(names, list):
                    host_names[NodeId(node)] = tuple(map(str, names))
        return host_names

    def read_matches(self) -> dict[str, NodeId]:
        """The node of each exporter address, as this or another collector last stored it."""
        nodes: dict[str, NodeId] = {}
        for document in self._records.documents(EXPORTER_TIES):
            matches = document.body.get("ties")
            if isinstance(matches, Mapping):
                nodes.update((str(address), NodeId(str(node))) for address, node in matches.items())
        return nodes

    def forget_others(self) -> None:
        """Remove the documents of other shards; called if no other process collects."""
        for kind in (EXPORTER_TIES, EXPORTER_QUESTIONS):
            for document in self._records.documents(kind):
                if document.key != self._shard:
                    self._records.remove_document(kind, document.key)

    def write_host_names(self, source: str, host_names: Mapping[NodeId, Sequence[str]], at: UnixMs) -> None:
        """Store other host names and addresses of a scheduler's nodes."""
        if host_names:
            self._write(HOST_NAMES, source, {node: list(names) for node, names in sorted(host_names.items())}, at)

    def write_matches(self, matcher: ExporterMatcher, questions: Sequence[NameQuestion], at: UnixMs) -> bool:
        """Store matches and questions; returns whether the questions changed."""
        self._write(EXPORTER_TIES, self._shard, {"ties": dict(sorted(matcher.matched_addresses().items()))}, at)
        unmatched = matcher.nodes_without_exporter() if matcher.has_exporters else []
        body = {"questions": [asdict(question) for question in questions], "nodes_without_exporter": unmatched}
        return self._write(EXPORTER_QUESTIONS, self._shard, body, at)

    def _write(self, kind: str, key: str, body: Mapping[str, object], at: UnixMs) -> bool:
        encoded = msgspec.json.encode(body)
        if self._written.get((kind, key)) == encoded:
            return False
        self._records.write_document(kind, key, msgspec.json.decode(encoded), at_ms=at)
        self._written[kind, key] = encoded
        return True
