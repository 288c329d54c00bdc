"""Words the questions that remain when exporters are tied to nodes, each with a proposed answer to paste. Pure."""

import difflib
import re
from collections.abc import Mapping, Sequence

from clusterscape.ingest.exporter_labels import ExporterNames
from clusterscape.ingest.node_names import shorten, split_address
from clusterscape.ingest.node_ties import NodeTies, Tie, TieKind
from clusterscape.model import NodeId, UnitId
from clusterscape.model.exporter_names import NameQuestion

MAX_QUESTIONS = 100
NAMED_NODES = 5
UNKNOWN_NODE = "NODE"
"""Stands in a line to paste where nothing can be proposed."""

Twins = Mapping[ExporterNames, Mapping[UnitId, UnitId]]
"""Units that an exporter shows and that do not count, because another one shows the same GPU elsewhere."""


def ask_questions(ties: NodeTies, twins: Twins) -> list[NameQuestion]:
    """All questions that are open, by exporter."""
    lacking = ties.nodes_without_exporter()
    proposals = propose_nodes(ties, lacking)
    questions = []
    for names, tie in ties.ties.items():
        problem = _find_problem(names, tie, ties, lacking)
        proposed: NodeId | None = tie.node
        if tie.kind is TieKind.OPEN:
            proposed = proposals.get(names)
        elif tie.kind is TieKind.SETTING:
            proposed = _find_close(tie.node, lacking)
        elif problem is None and names in twins:
            unit, home = next(iter(twins[names].items()))
            problem = f"shows the same GPU as {home}, as {unit} ({len(twins[names])} GPUs count once)"
            proposed = NodeId(str(home).partition(":")[0])
        if problem is not None:
            questions.append(_ask(names, tie, problem, proposed, len(ties.shown_by(names).uuids)))
    return sorted(questions, key=lambda each: natural(each.exporter))[:MAX_QUESTIONS]


def propose_nodes(ties: NodeTies, lacking: Sequence[NodeId]) -> dict[ExporterNames, NodeId]:
    """For each open exporter the node that it most likely is: by the number in its name, or one by one where as many are left."""
    asking = sorted((names for names, tie in ties.ties.items() if tie.kind is TieKind.OPEN), key=_sort_key)
    left = sorted(lacking, key=natural)
    found: dict[ExporterNames, NodeId] = {}
    for names in asking:
        alike = [node for node in ties.find_fitting(names, left) if _is_alike(names, node)]
        if len(alike) == 1:
            found[names] = alike[0]
            left.remove(alike[0])
    rest = [names for names in asking if names not in found]
    if len(rest) == len(left) and all(
        node in ties.find_fitting(names, left) for names, node in zip(rest, left, strict=True)
    ):
        found.update(zip(rest, left, strict=True))
    for names in rest:
        fitting = ties.find_fitting(names, left)
        if names not in found and len(fitting) == 1:
            found[names] = fitting[0]
    return found


def natural(text: str) -> list[tuple[int, str]]:
    """Sorts ``gpu10`` after ``gpu9``."""
    return [(int(digits or 0), word) for word, digits in re.findall(r"(\D*)(\d*)", text)]


def _find_problem(names: ExporterNames, tie: Tie, ties: NodeTies, lacking: Sequence[NodeId]) -> str | None:
    called = f'calls itself "{names.host}"' if names.host else "names no host"
    if tie.rivals:
        other = tie.rivals[0]
        return f"{called}, as {_name_of(other)} does, but shows other GPUs"
    if tie.kind is TieKind.OPEN:
        fitting = ties.find_fitting(names, lacking)
        choice = ", ".join(fitting[:NAMED_NODES]) + (" …" if len(fitting) > NAMED_NODES else "")
        return f"{called}, which no scheduler knows; it may be {choice}, where no exporter is"
    if tie.kind is TieKind.OWN and ties.nodes:
        return f"{called}, which no scheduler knows; it is shown as a node of its own"
    if tie.kind is TieKind.SETTING and tie.node not in ties.nodes and ties.nodes:
        close = _find_close(tie.node, lacking)
        is_own = tie.node in {shorten(split_address(name)) for name in (names.host, names.node, names.address) if name}
        return None if close is None or is_own else f'is said to be "{tie.node}", which no scheduler knows'
    if tie.asked_as is not None:
        return f"is asked as {tie.asked_as} and {called}; both are nodes, and it is taken for {tie.node}"
    return None


def _ask(names: ExporterNames, tie: Tie, problem: str, proposed: NodeId | None, gpus: int) -> NameQuestion:
    key = names.address or names.host or names.node or tie.node
    return NameQuestion(
        exporter=_name_of(names),
        host_name=names.host,
        gpus=gpus,
        problem=problem,
        proposed=proposed,
        setting=f"{_quote(key)} = {_quote(proposed or UNKNOWN_NODE)}",
        is_counted=tie.is_counted,
    )


def _name_of(names: ExporterNames) -> str:
    return names.address or names.host or names.node or names.configured or "an exporter"


def _sort_key(names: ExporterNames) -> list[tuple[int, str]]:
    return natural(_name_of(names))


def _is_alike(names: ExporterNames, node: NodeId) -> bool:
    """Whether the last number of a name of the exporter is that of the node. Ports are numbers, but not of hosts."""
    wanted = _last_number(shorten(node))
    hosts = [shorten(split_address(name)) for name in (names.node, names.host, names.address) if name]
    return wanted is not None and wanted in {_last_number(host) for host in hosts}


def _last_number(text: str) -> int | None:
    found = re.findall(r"\d+", text)
    return int(found[-1]) if found else None


def _find_close(node: NodeId, lacking: Sequence[NodeId]) -> NodeId | None:
    close = difflib.get_close_matches(node, lacking, n=1, cutoff=0.75)
    return NodeId(close[0]) if close else None


def _quote(text: str) -> str:
    """A basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'
