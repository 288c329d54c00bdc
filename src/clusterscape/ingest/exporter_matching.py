"""Matches every exporter to one node: by the settings, its names, its address, or the GPUs that it reports. Pure.

An exporter in a container, behind a forwarded port or under an alias reports another host name than the scheduler's. If it were
treated as a separate host, its GPUs would be counted twice. So while a node of a scheduler has no exporter, an exporter without
a match becomes a question (``ingest/name_questions.py``), and its GPUs are not counted until an operator answers it. Otherwise
it is a separate host.
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
"""Returns the node of each GPU, for nodes of schedulers."""


MAX_FORMER_NAMES = 10_000
"""Limit of remembered former names: a container has a new one after every start."""


class MatchKind(StrEnum):
    """How an exporter was matched."""

    SETTING = "setting"
    NAME = "name"
    ADDRESS = "address"
    GPUS = "gpus"  # another exporter, or an earlier run, reported the same GPUs there
    OWN = "own"  # a separate host, not a node of any scheduler
    OPEN = "open"  # no certain match: a question


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """``rivals`` report the same name and different GPUs; ``address_node``: the address names another node."""

    node: NodeId
    kind: MatchKind
    address_node: NodeId | None = None
    rivals: tuple[ExporterNames, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Whether its GPUs are counted in the cluster."""
        return self.kind is not MatchKind.OPEN


@dataclass(slots=True)
class ReportedGpus:
    """GPUs of an exporter: the latest UUID by index, and the models."""

    uuids: dict[int, GpuUuid | None] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)

    def contradicts(self, other: "ReportedGpus") -> bool:
        """Whether both report different GPUs at the same index, so that they cannot be the same host."""
        return any(
            uuid is not None and (theirs := other.uuids.get(index)) is not None and theirs != uuid
            for index, uuid in self.uuids.items()
        )


class ExporterMatcher:
    """The node of every exporter. All are matched together, because one match rules out the node for others."""

    def __init__(self, node_names: Mapping[str, str] | None = None) -> None:
        """``node_names``: the setting of this name; nodes by address or name of exporters."""
        self._settings = {name.lower(): NodeId(node) for name, node in (node_names or {}).items()}
        self._nodes: Mapping[NodeId, Node] = {}
        self._host_names: dict[NodeId, Sequence[str]] = {}
        self._names = NodeNames()
        self._reported: dict[ExporterNames, ReportedGpus] = {}
        self._former_names: dict[ExporterNames, ReportedGpus] = {}
        self._targets: dict[ExporterNames, None] = {}  # scraped exporters, whether or not they respond
        self._previous: Mapping[str, NodeId] = {}  # by address, of an earlier run
        self._matches: dict[ExporterNames, NodeMatch] = {}
        self._addresses: Mapping[
            str, NodeId | None
        ] = {}  # of all matches; None if one address belongs to several nodes
        self._gateways: frozenset[str] = frozenset()
        self._is_dirty = False
        self.version = 0
        """Increases when an exporter is matched to another node."""
        self.settled = 0
        """Increases with every ``settle`` that had something to do."""

    # inputs

    def update_nodes(self, nodes: Iterable[Node], host_names: Mapping[NodeId, Sequence[str]] | None = None) -> None:
        """Replace the schedulers' nodes, and add their other names and addresses."""
        nodes_by_id = {node.id: node for node in nodes}
        has_new_names = any(self._host_names.get(node) != names for node, names in (host_names or {}).items())
        self._host_names.update(host_names or {})
        if has_new_names or _matching_facts(nodes_by_id) != _matching_facts(self._nodes):
            self._nodes, self._names = nodes_by_id, NodeNames(nodes_by_id, self._host_names)
            self._is_dirty = True

    def set_previous(self, matches: Mapping[str, NodeId]) -> None:
        """Nodes by address from an earlier run, for exporters that have not responded since."""
        self._previous = matches

    def see(self, names: ExporterNames, index: int | None, uuid: GpuUuid | None, model: str | None) -> None:
        """An exporter with these names reports a GPU."""
        reported = self._reported.get(names)
        if reported is None:
            reported = self._reported[names] = ReportedGpus()
            self._is_dirty = True
        if index is not None and reported.uuids.get(index, "") != uuid:
            reported.uuids[index] = uuid
            self._is_dirty = True
        if model is not None and model not in reported.models:
            reported.models.add(model)

    def rename(self, former: Iterable[ExporterNames], names: Iterable[ExporterNames]) -> None:
        """An exporter changed its names, possibly back to former ones."""
        for new_names in names:
            if new_names not in self._reported:
                self._reported[new_names] = self._former_names.pop(new_names, ReportedGpus())
                self._is_dirty = True
                self.version += 1
        for old_names in former:
            reported = self._reported.pop(old_names, None)
            if reported is not None:
                self._former_names[old_names] = reported
                self._is_dirty = True
        while len(self._former_names) > MAX_FORMER_NAMES:
            del self._former_names[next(iter(self._former_names))]

    def add_target(self, address: str, configured: NodeId | None) -> None:
        """An exporter is scraped at this address, whether or not it responds."""
        target = ExporterNames(configured=configured, address=address, is_direct=True)
        if target not in self._targets:
            self._targets[target] = None
            self._is_dirty = True

    def remove_targets(self, addresses: Iterable[str]) -> None:
        """These exporters are no longer scraped."""
        removed = set(addresses)
        for names in [names for names in self._targets if names.address in removed]:
            del self._targets[names]
            self._is_dirty = True

    # results

    def settle(self, uuid_nodes: UuidNodes = dict) -> list[ExporterNames]:
        """Match all exporters again if an input changed; returns those with another node or none."""
        if not self._is_dirty:
            return []
        self._is_dirty = False
        self.settled += 1
        self._gateways = self._find_gateways()
        before, self._matches = self._matches, self._match_all(uuid_nodes)
        self._addresses = _index_addresses(self._matches)
        moved = [names for names, match in before.items() if not _is_same_match(match, self._matches.get(names))]
        self.version += bool(moved)
        return moved

    def find(self, names: ExporterNames) -> NodeMatch | None:
        """The match of an exporter as of the last ``settle``; None for former names."""
        return self._matches.get(names)

    def node_of_address(self, address: str) -> NodeId | None:
        """The node of the exporter at this address; None if it is open or unknown."""
        if address in self._addresses:
            return self._addresses[address]
        return self._find_silent(ExporterNames(address=address, is_direct=True))

    def _find_silent(self, names: ExporterNames) -> NodeId | None:
        """The node of an exporter that has not responded."""
        match = self._match_by_name(names)
        if match is not None:
            return match.node
        former = self._previous.get(names.address or "")
        if former is not None:
            return former
        host = split_address(names.address or "")
        return None if self._nodes or is_ip(host) or is_loopback(host) else NodeId(shorten(host))

    @property
    def matches(self) -> Mapping[ExporterNames, NodeMatch]:
        """All matches as of the last ``settle``."""
        return self._matches

    @property
    def nodes(self) -> Mapping[NodeId, Node]:
        """The schedulers' nodes."""
        return self._nodes

    @property
    def has_exporters(self) -> bool:
        """Whether any exporter is scraped or has reported GPUs."""
        return bool(self._targets or self._reported)

    def reported_by(self, names: ExporterNames) -> ReportedGpus:
        """The GPUs that an exporter reported."""
        return self._reported.get(names) or ReportedGpus()

    def matched_addresses(self) -> dict[str, NodeId]:
        """The node of each address, to be stored for the next run."""
        return {address: node for address, node in self._addresses.items() if node is not None}

    def nodes_without_exporter(self) -> list[NodeId]:
        """Nodes with GPUs to which no exporter is matched, by name."""
        return self._find_unmatched(self._matches)

    def _find_unmatched(self, matches: Mapping[ExporterNames, NodeMatch]) -> list[NodeId]:
        matched = {match.node for match in matches.values() if match.is_counted}
        responding = {names.address for names in self._reported}
        for names in self._targets:
            if names.address not in responding and (node := self._find_silent(names)) is not None:
                matched.add(node)
        return sorted(node.id for node in self._nodes.values() if node.gpu_count > 0 and node.id not in matched)

    def find_candidates(self, names: ExporterNames, nodes: Iterable[NodeId]) -> list[NodeId]:
        """Those of ``nodes`` that may have the GPUs that an exporter reports."""
        reported = self.reported_by(names)
        models = {word for model in reported.models for word in _model_words(name_machine_type(model))}
        return [
            node
            for node in nodes
            if len(reported.uuids) <= self._nodes[node].gpu_count
            and _share_word(models, _model_words(self._nodes[node].machine_type))
        ]

    # matching

    def _match_all(self, uuid_nodes: UuidNodes) -> dict[ExporterNames, NodeMatch]:
        matches: dict[ExporterNames, NodeMatch] = {}
        for names in self._reported:
            if (match := self._match_by_name(names)) is not None:
                matches[names] = match
        rivals = self._separate_rivals(matches)
        homes = self._find_homes(matches, uuid_nodes) if len(matches) < len(self._reported) else {}
        for names, reported in self._reported.items():
            if names not in matches and (node := _find_home(reported, homes)) is not None:
                matches[names] = NodeMatch(node, MatchKind.GPUS)
        unmatched = self._find_unmatched(matches) if len(matches) < len(self._reported) else []
        for names in self._reported:
            if names not in matches:
                kind = MatchKind.OPEN if self.find_candidates(names, unmatched) else MatchKind.OWN
                matches[names] = NodeMatch(self._own_name(names), kind, rivals=rivals.get(names, ()))
        self._separate_own_hosts(matches)
        return matches

    def _find_homes(self, matches: Mapping[ExporterNames, NodeMatch], uuid_nodes: UuidNodes) -> dict[GpuUuid, NodeId]:
        """The node of each GPU: as stored, and as reported by exporters with a certain node."""
        homes = dict(uuid_nodes()) if self._nodes else {}
        for names, match in matches.items():
            homes.update((uuid, match.node) for uuid in self._reported[names].uuids.values() if uuid is not None)
        return homes

    def _match_by_name(self, names: ExporterNames) -> NodeMatch | None:
        """Match by the settings, a name or an address; None if these belong to no node of a scheduler."""
        configured = names.configured or self._find_setting(names)
        if configured is not None:
            return NodeMatch(configured, MatchKind.SETTING)
        address_node = self._find_address_node(names)
        for name in (names.node, names.host):
            if name and (node := self._names.find(split_address(name))) is not None:
                return NodeMatch(node, MatchKind.NAME, address_node=address_node if address_node != node else None)
        if address_node is not None:
            return NodeMatch(address_node, MatchKind.NAME)
        for name in (names.address, names.host):
            if name and (node := self._names.find_address(split_address(name))) is not None:
                return NodeMatch(node, MatchKind.ADDRESS)
        return None

    def _find_address_node(self, names: ExporterNames) -> NodeId | None:
        """The node named by the host of the exporter's address."""
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

    def _separate_rivals(
        self, matches: dict[ExporterNames, NodeMatch]
    ) -> dict[ExporterNames, tuple[ExporterNames, ...]]:
        """Of exporters with the same name and different GPUs one keeps the node; the others get the node of their address.

        Exporters without such a node are removed from ``matches`` and returned with their rivals.
        """
        rivals: dict[ExporterNames, tuple[ExporterNames, ...]] = {}
        for group in _by_node(matches).values():
            kept: list[ExporterNames] = []
            for names in sorted(group, key=lambda names: self._rank(names, matches[names])):
                others = tuple(other for other in kept if self._reported[names].contradicts(self._reported[other]))
                if not others or matches[names].kind is MatchKind.SETTING:
                    kept.append(names)
                    continue
                address_node = matches[names].address_node
                if address_node is not None:
                    matches[names] = NodeMatch(address_node, MatchKind.NAME, rivals=others)
                else:
                    del matches[names]
                    rivals[names] = others
        return rivals

    def _rank(self, names: ExporterNames, match: NodeMatch) -> tuple[bool, bool, str]:
        """Sort key of exporters that are matched to the same node, most reliable first."""
        return (match.kind is not MatchKind.SETTING, self._find_address_node(names) != match.node, names.address or "")

    def _separate_own_hosts(self, matches: dict[ExporterNames, NodeMatch]) -> None:
        """Separate hosts with the same name and different GPUs are named by their addresses."""
        for group in _by_node(
            {names: match for names, match in matches.items() if match.kind is MatchKind.OWN}
        ).values():
            first, *others = sorted(group, key=lambda names: names.address or "")
            for names in others:
                if names.address and self._reported[names].contradicts(self._reported[first]):
                    matches[names] = NodeMatch(_name_by_address(names.address), MatchKind.OWN, rivals=(first,))

    def _own_name(self, names: ExporterNames) -> NodeId:
        """The name of a separate host, which is not a node of any scheduler."""
        address_host = split_address(names.address) if names.address else ""
        is_host_name = (
            bool(address_host)
            and not is_loopback(address_host)
            and not is_ip(address_host)
            and address_host not in self._gateways
        )
        own = [split_address(name) for name in (names.node, names.host) if name]
        choices = [address_host, *own] if names.is_direct and is_host_name and not names.node else [*own, address_host]
        for host in choices:
            if host and not is_loopback(host):
                return NodeId(shorten(host))
        if names.address and address_host in self._gateways:
            return _name_by_address(names.address)
        return NodeId(shorten(next(filter(None, choices), "localhost")))

    def _find_gateways(self) -> frozenset[str]:
        """Hosts of addresses at which exporters report different host names: forwarded ports."""
        names_at: dict[str, set[str | None]] = {}
        for names in self._reported:
            if names.address:
                names_at.setdefault(split_address(names.address), set()).add(names.host)
        return frozenset(host for host, names in names_at.items() if len(names) > 1)


def _is_same_match(match: NodeMatch, other: NodeMatch | None) -> bool:
    return other is not None and (match.node, match.is_counted) == (other.node, other.is_counted)


def _matching_facts(nodes: Mapping[NodeId, Node]) -> dict[NodeId, tuple[int, str | None]]:
    """The facts about nodes that matching depends on."""
    return {key: (node.gpu_count, node.machine_type) for key, node in nodes.items()}


def _by_node(matches: Mapping[ExporterNames, NodeMatch]) -> dict[NodeId, list[ExporterNames]]:
    """Exporters by node, for nodes with more than one."""
    groups: dict[NodeId, list[ExporterNames]] = {}
    for names, match in matches.items():
        groups.setdefault(match.node, []).append(names)
    return {node: group for node, group in groups.items() if len(group) > 1}


def _find_home(reported: ReportedGpus, homes: Mapping[GpuUuid, NodeId]) -> NodeId | None:
    """The node of all of these GPUs that have one; None if they have several."""
    nodes = {homes[uuid] for uuid in reported.uuids.values() if uuid is not None and uuid in homes}
    return next(iter(nodes)) if len(nodes) == 1 else None


def _name_by_address(address: str) -> NodeId:
    host = split_address(address)
    port = address.rpartition(":")[2] if address != host else ""
    return NodeId(f"{shorten(host)}-{port}" if port.isdigit() else shorten(host))


def _model_words(machine_type: str | None) -> set[str]:
    """``A100`` of ``A100-80G``: schedulers often do not report the memory."""
    words = re.split(r"[-+_ ]", machine_type.upper()) if machine_type else []
    return {word for word in words if not re.fullmatch(r"\d+G", word)}


def _share_word(models: set[str], others: set[str]) -> bool:
    return not models or not others or bool(models & others)


def _index_addresses(matches: Mapping[ExporterNames, NodeMatch]) -> dict[str, NodeId | None]:
    nodes: dict[str, NodeId | None] = {}
    for names, match in matches.items():
        if names.address:
            node = match.node if match.is_counted else None
            nodes[names.address] = node if nodes.get(names.address, node) == node else None
    return nodes
