"""Ties every exporter to one node: by the settings, by its names, by its address, by the GPUs it shows. Pure.

An exporter in a container, behind a forwarded port or under an alias calls itself otherwise than the scheduler does. Taken for a
host of its own, its GPUs would count twice. So one that cannot be tied while a scheduler's node lacks an exporter is a question,
worded by ``ingest/name_questions.py``, and its GPUs do not count until it is answered; others are hosts of their own.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from clusterscape.ingest.exporter_labels import ExporterNames
from clusterscape.ingest.node_names import NodeNames, is_ip, is_loopback, shorten, split_address
from clusterscape.model import GpuUuid, Node, NodeId
from clusterscape.model.machine_types import name_machine_type

UuidNodes = Callable[[], Mapping[GpuUuid, NodeId]]
"""Where GPUs have been seen, of nodes that a scheduler names."""


MOST_GIVEN_UP = 10_000
"""Former names that are remembered: a container has a new one after every start."""


class TieKind(StrEnum):
    """How it is known."""

    SETTING = "setting"
    NAME = "name"
    ADDRESS = "address"
    GPUS = "gpus"  # another exporter, or an earlier run, showed the same GPUs there
    OWN = "own"  # no scheduler names it
    OPEN = "open"  # a question


@dataclass(frozen=True, slots=True)
class Tie:
    """``rivals`` call themselves the same and show other GPUs; ``asked_as`` is another node, named by the address."""

    node: NodeId
    kind: TieKind
    asked_as: NodeId | None = None
    rivals: tuple[ExporterNames, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Whether its GPUs are part of the cluster."""
        return self.kind is not TieKind.OPEN


@dataclass(slots=True)
class Shown:
    """What an exporter has shown: the newest UUID by index, and the models of its GPUs."""

    uuids: dict[int, GpuUuid | None] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)

    def contradicts(self, other: "Shown") -> bool:
        """Whether the two show different GPUs at the same place, so that they cannot be of one host."""
        return any(
            uuid is not None and (theirs := other.uuids.get(index)) is not None and theirs != uuid
            for index, uuid in self.uuids.items()
        )


class NodeTies:
    """Every exporter's node. What changes is settled at once for all, since one exporter's tie narrows the others' choice."""

    def __init__(self, node_names: Mapping[str, str] | None = None) -> None:
        """``node_names``: the setting of this name, from addresses and names of exporters to nodes."""
        self._settings = {name.lower(): NodeId(node) for name, node in (node_names or {}).items()}
        self._nodes: Mapping[NodeId, Node] = {}
        self._host_names: dict[NodeId, Sequence[str]] = {}
        self._names = NodeNames()
        self._shown: dict[ExporterNames, Shown] = {}
        self._given_up: dict[ExporterNames, Shown] = {}
        self._asked: dict[ExporterNames, None] = {}  # whether or not they answer
        self._former: Mapping[str, NodeId] = {}  # by address, of an earlier run
        self._ties: dict[ExporterNames, Tie] = {}
        self._addresses: Mapping[str, NodeId | None] = {}  # of all ties; None where one address leads to several nodes
        self._gateways: frozenset[str] = frozenset()
        self._is_dirty = False
        self.version = 0
        """Grows when an exporter belongs elsewhere than before."""
        self.settled = 0
        """Grows when anything was settled."""

    # what is learned

    def learn_nodes(self, nodes: Iterable[Node], host_names: Mapping[NodeId, Sequence[str]] | None = None) -> None:
        """The nodes that schedulers name, and (added to what is known) under which names and addresses they reach them."""
        found = {node.id: node for node in nodes}
        is_news = any(self._host_names.get(node) != names for node, names in (host_names or {}).items())
        self._host_names.update(host_names or {})
        if is_news or _matter(found) != _matter(self._nodes):
            self._nodes, self._names = found, NodeNames(found, self._host_names)
            self._is_dirty = True

    def learn_former(self, ties: Mapping[str, NodeId]) -> None:
        """To which nodes addresses led in an earlier run: all that is known of an exporter that has not answered since."""
        self._former = ties

    def see(self, names: ExporterNames, index: int | None, uuid: GpuUuid | None, model: str | None) -> None:
        """An exporter of these names shows a GPU."""
        shown = self._shown.get(names)
        if shown is None:
            shown = self._shown[names] = Shown()
            self._is_dirty = True
        if index is not None and shown.uuids.get(index, "") != uuid:
            shown.uuids[index] = uuid
            self._is_dirty = True
        if model is not None and model not in shown.models:
            shown.models.add(model)

    def rename(self, former: Iterable[ExporterNames], names: Iterable[ExporterNames]) -> None:
        """An exporter goes by other names than before; it may take up former ones again."""
        for each in names:
            if each not in self._shown:
                self._shown[each] = self._given_up.pop(each, Shown())
                self._is_dirty = True
                self.version += 1
        for each in former:
            shown = self._shown.pop(each, None)
            if shown is not None:
                self._given_up[each] = shown
                self._is_dirty = True
        while len(self._given_up) > MOST_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]

    def note_asked(self, address: str, configured: NodeId | None) -> None:
        """An exporter is asked there, whether or not it answers."""
        asked = ExporterNames(configured=configured, address=address, is_asked=True)
        if asked not in self._asked:
            self._asked[asked] = None
            self._is_dirty = True

    def forget_asked(self, addresses: Iterable[str]) -> None:
        """Exporters that are not asked any more."""
        gone = set(addresses)
        for names in [names for names in self._asked if names.address in gone]:
            del self._asked[names]
            self._is_dirty = True

    # what follows

    def settle(self, uuid_nodes: UuidNodes = dict) -> list[ExporterNames]:
        """Tie all exporters anew where something was learned; those that now belong elsewhere, or nowhere."""
        if not self._is_dirty:
            return []
        self._is_dirty = False
        self.settled += 1
        self._gateways = self._find_gateways()
        before, self._ties = self._ties, self._tie_all(uuid_nodes)
        self._addresses = _index_addresses(self._ties)
        moved = [names for names, tie in before.items() if not _is_same(tie, self._ties.get(names))]
        self.version += bool(moved)
        return moved

    def find(self, names: ExporterNames) -> Tie | None:
        """The tie of an exporter that was seen before the last ``settle``; None of a name that was given up."""
        return self._ties.get(names)

    def node_of_address(self, address: str) -> NodeId | None:
        """The node whose exporter is asked there; None where that is open or not known."""
        if address in self._addresses:
            return self._addresses[address]
        return self._find_silent(ExporterNames(address=address, is_asked=True))

    def _find_silent(self, names: ExporterNames) -> NodeId | None:
        """The node of an exporter that has not answered."""
        tie = self._tie_certainly(names)
        if tie is not None:
            return tie.node
        former = self._former.get(names.address or "")
        if former is not None:
            return former
        host = split_address(names.address or "")
        return None if self._nodes or is_ip(host) or is_loopback(host) else NodeId(shorten(host))

    @property
    def ties(self) -> Mapping[ExporterNames, Tie]:
        """As last settled."""
        return self._ties

    @property
    def nodes(self) -> Mapping[NodeId, Node]:
        """The schedulers' nodes."""
        return self._nodes

    @property
    def has_exporters(self) -> bool:
        """Whether any is asked or has been seen."""
        return bool(self._asked or self._shown)

    def shown_by(self, names: ExporterNames) -> Shown:
        """What an exporter has shown."""
        return self._shown.get(names) or Shown()

    def tied_addresses(self) -> dict[str, NodeId]:
        """The node behind each address, for the next run."""
        return {address: node for address, node in self._addresses.items() if node is not None}

    def nodes_without_exporter(self) -> list[NodeId]:
        """Nodes with GPUs that no exporter is tied to, by name."""
        return self._find_lacking(self._ties)

    def _find_lacking(self, ties: Mapping[ExporterNames, Tie]) -> list[NodeId]:
        tied = {tie.node for tie in ties.values() if tie.is_counted}
        answering = {names.address for names in self._shown}
        for names in self._asked:
            if names.address not in answering and (node := self._find_silent(names)) is not None:
                tied.add(node)
        return sorted(node.id for node in self._nodes.values() if node.gpu_count > 0 and node.id not in tied)

    def find_fitting(self, names: ExporterNames, nodes: Iterable[NodeId]) -> list[NodeId]:
        """Those of ``nodes`` that may have the GPUs which an exporter shows."""
        shown = self.shown_by(names)
        models = {word for model in shown.models for word in _model_words(name_machine_type(model))}
        return [
            node
            for node in nodes
            if len(shown.uuids) <= self._nodes[node].gpu_count
            and _share_word(models, _model_words(self._nodes[node].machine_type))
        ]

    # how

    def _tie_all(self, uuid_nodes: UuidNodes) -> dict[ExporterNames, Tie]:
        ties: dict[ExporterNames, Tie] = {}
        for names in self._shown:
            if (tie := self._tie_certainly(names)) is not None:
                ties[names] = tie
        rivals = self._part_rivals(ties)
        homes = self._find_homes(ties, uuid_nodes) if len(ties) < len(self._shown) else {}
        for names, shown in self._shown.items():
            if names not in ties and (node := _find_home(shown, homes)) is not None:
                ties[names] = Tie(node, TieKind.GPUS)
        lacking = self._find_lacking(ties) if len(ties) < len(self._shown) else []
        for names in self._shown:
            if names not in ties:
                kind = TieKind.OPEN if self.find_fitting(names, lacking) else TieKind.OWN
                ties[names] = Tie(self._own_name(names), kind, rivals=rivals.get(names, ()))
        self._part_owns(ties)
        return ties

    def _find_homes(self, ties: Mapping[ExporterNames, Tie], uuid_nodes: UuidNodes) -> dict[GpuUuid, NodeId]:
        """Where GPUs are: as seen before, and as exporters show them whose node is certain."""
        homes = dict(uuid_nodes()) if self._nodes else {}
        for names, tie in ties.items():
            homes.update((uuid, tie.node) for uuid in self._shown[names].uuids.values() if uuid is not None)
        return homes

    def _tie_certainly(self, names: ExporterNames) -> Tie | None:
        """By the settings, a name or an address; None where these lead to no node of a scheduler."""
        configured = names.configured or self._find_setting(names)
        if configured is not None:
            return Tie(configured, TieKind.SETTING)
        asked = self._find_asked(names)
        for name in (names.node, names.host):
            if name and (node := self._names.find(split_address(name))) is not None:
                return Tie(node, TieKind.NAME, asked_as=asked if asked != node else None)
        if asked is not None:
            return Tie(asked, TieKind.NAME)
        for name in (names.address, names.host):
            if name and (node := self._names.find_address(split_address(name))) is not None:
                return Tie(node, TieKind.ADDRESS)
        return None

    def _find_asked(self, names: ExporterNames) -> NodeId | None:
        """The node of the host name that is asked."""
        host = split_address(names.address) if names.address else ""
        return self._names.find(host) if host and not is_ip(host) and host not in self._gateways else None

    def _find_setting(self, names: ExporterNames) -> NodeId | None:
        for name in (names.address, names.host, names.node):
            if name is None:
                continue
            host = split_address(name)
            for key in (name, host, shorten(host)):
                if (node := self._settings.get(key.lower())) is not None:
                    return node
        return None

    def _part_rivals(self, ties: dict[ExporterNames, Tie]) -> dict[ExporterNames, tuple[ExporterNames, ...]]:
        """Exporters that call themselves the same and show different GPUs: one stays, the others go where they are asked.

        What remains untied is taken out of ``ties`` and returned with those it rivals.
        """
        rivals: dict[ExporterNames, tuple[ExporterNames, ...]] = {}
        for group in _by_node(ties).values():
            kept: list[ExporterNames] = []
            for names in sorted(group, key=lambda names: self._rank(names, ties[names])):
                others = tuple(other for other in kept if self._shown[names].contradicts(self._shown[other]))
                if not others or ties[names].kind is TieKind.SETTING:
                    kept.append(names)
                    continue
                asked = ties[names].asked_as
                if asked is not None:
                    ties[names] = Tie(asked, TieKind.NAME, rivals=others)
                else:
                    del ties[names]
                    rivals[names] = others
        return rivals

    def _rank(self, names: ExporterNames, tie: Tie) -> tuple[bool, bool, str]:
        """Whom to believe first of several that claim one node."""
        return (tie.kind is not TieKind.SETTING, self._find_asked(names) != tie.node, names.address or "")

    def _part_owns(self, ties: dict[ExporterNames, Tie]) -> None:
        """Hosts of their own that share a name and show different GPUs are told apart by their addresses."""
        for group in _by_node({names: tie for names, tie in ties.items() if tie.kind is TieKind.OWN}).values():
            first, *others = sorted(group, key=lambda names: names.address or "")
            for names in others:
                if names.address and self._shown[names].contradicts(self._shown[first]):
                    ties[names] = Tie(_name_by_address(names.address), TieKind.OWN, rivals=(first,))

    def _own_name(self, names: ExporterNames) -> NodeId:
        """What to call the host of an exporter that no scheduler's node is."""
        asked = split_address(names.address) if names.address else ""
        is_telling = bool(asked) and not is_loopback(asked) and not is_ip(asked) and asked not in self._gateways
        own = [split_address(name) for name in (names.node, names.host) if name]
        choices = [asked, *own] if names.is_asked and is_telling and not names.node else [*own, asked]
        for host in choices:
            if host and not is_loopback(host):
                return NodeId(shorten(host))
        if names.address and asked in self._gateways:
            return _name_by_address(names.address)
        return NodeId(shorten(next(filter(None, choices), "localhost")))

    def _find_gateways(self) -> frozenset[str]:
        """Hosts at which exporters are asked that call themselves differently: forwarded ports."""
        names_at: dict[str, set[str | None]] = {}
        for names in self._shown:
            if names.address:
                names_at.setdefault(split_address(names.address), set()).add(names.host)
        return frozenset(host for host, names in names_at.items() if len(names) > 1)


def _is_same(tie: Tie, other: Tie | None) -> bool:
    return other is not None and (tie.node, tie.is_counted) == (other.node, other.is_counted)


def _matter(nodes: Mapping[NodeId, Node]) -> dict[NodeId, tuple[int, str | None]]:
    """What of nodes the ties hang on."""
    return {key: (node.gpu_count, node.machine_type) for key, node in nodes.items()}


def _by_node(ties: Mapping[ExporterNames, Tie]) -> dict[NodeId, list[ExporterNames]]:
    """Groups of more than one."""
    groups: dict[NodeId, list[ExporterNames]] = {}
    for names, tie in ties.items():
        groups.setdefault(tie.node, []).append(names)
    return {node: group for node, group in groups.items() if len(group) > 1}


def _find_home(shown: Shown, homes: Mapping[GpuUuid, NodeId]) -> NodeId | None:
    """The one node where all of these GPUs that are known have been seen."""
    found = {homes[uuid] for uuid in shown.uuids.values() if uuid is not None and uuid in homes}
    return next(iter(found)) if len(found) == 1 else None


def _name_by_address(address: str) -> NodeId:
    host = split_address(address)
    port = address.rpartition(":")[2] if address != host else ""
    return NodeId(f"{shorten(host)}-{port}" if port.isdigit() else shorten(host))


def _model_words(machine_type: str | None) -> set[str]:
    """``A100`` of ``A100-80G``: schedulers often do not tell the memory."""
    words = re.split(r"[-+_ ]", machine_type.upper()) if machine_type else []
    return {word for word in words if not re.fullmatch(r"\d+G", word)}


def _share_word(models: set[str], others: set[str]) -> bool:
    return not models or not others or bool(models & others)


def _index_addresses(ties: Mapping[ExporterNames, Tie]) -> dict[str, NodeId | None]:
    found: dict[str, NodeId | None] = {}
    for names, tie in ties.items():
        if names.address:
            node = tie.node if tie.is_counted else None
            found[names.address] = node if found.get(names.address, node) == node else None
    return found
