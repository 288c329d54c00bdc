"""Parses nodes, units and partitions from Slurm's JSON, by structure, not version. Malformed entries are counted, not raised."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clusterscape.collect.slurm.gres import MAX_GPUS_PER_NODE, Gres, name_machine_type, parse_gres
from clusterscape.collect.slurm.states import node_state
from clusterscape.collect.slurm.values import (
    as_list,
    as_object,
    expand_hostlist,
    read_int,
    read_minutes,
    read_names,
    read_text,
    read_words,
)
from clusterscape.model import Node, NodeId, NodeState, Partition, Unit, UnitId, UnitKind, gpu_unit_id

MEBIBYTE = 2**20


@dataclass(frozen=True)
class SlurmInventory:
    """The nodes of the last poll, with the lookups that parsing jobs needs."""

    nodes: tuple[Node, ...] = ()
    units: tuple[Unit, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    node_units: Mapping[NodeId, tuple[UnitId, ...]] = field(default_factory=dict)
    machine_types: Mapping[NodeId, str | None] = field(default_factory=dict)
    type_names: Mapping[str, str | None] = field(default_factory=dict)  # GRES type → machine type, None if ambiguous
    partition_types: Mapping[str, str | None] = field(default_factory=dict)  # None: several machine types
    host_names: Mapping[NodeId, tuple[str, ...]] = field(default_factory=dict)  # NodeHostName and NodeAddr
    nodes_without_index: tuple[NodeId, ...] = ()  # GPUs without index: no File= or AutoDetect= in gres.conf


@dataclass(frozen=True, slots=True)
class _ParsedNode:
    node: Node
    gpus: tuple[Gres, ...]
    units: tuple[Unit, ...]
    has_index: bool
    host_names: tuple[str, ...]


def slurm_unit_id(node: NodeId, ordinal: int, *, is_mig: bool) -> UnitId:
    """The id of Slurm's ``ordinal``-th GPU. The ordinal of a MIG instance is not the GPU index of NVML, so its id differs."""
    return UnitId(f"{node}:mig{ordinal}") if is_mig else gpu_unit_id(node, ordinal)


def iter_entries(document: Mapping[str, object], key: str, dropped: Counter[str]) -> Iterator[dict[str, object]]:
    """Yield the objects of ``document[key]``; other values are counted."""
    entries = document.get(key)
    if not isinstance(entries, list):
        dropped[f"no list of {key}"] += 1
        return
    for entry in as_list(entries):
        if isinstance(entry, dict):
            yield as_object(entry)
        else:
            dropped[f"{key}: not an object"] += 1


def parse_nodes(document: Mapping[str, object]) -> SlurmInventory:
    """Parse a ``nodes`` response (slurmrestd, ``scontrol show nodes --json``, older ``sinfo --json``)."""
    dropped: Counter[str] = Counter()
    parsed: dict[NodeId, _ParsedNode] = {}
    for entry in iter_entries(document, "nodes", dropped):
        result = _parse_node(entry)
        if isinstance(result, str):
            dropped[result] += 1
        elif result is not None:
            parsed[result.node.id] = result
    return _gather(list(parsed.values()), dropped)


def _parse_node(entry: dict[str, object]) -> _ParsedNode | str | None:
    """The node, the reason why it was dropped, or None if it does not exist yet (state FUTURE)."""
    name = read_text(entry.get("name"))
    if name is None:
        return "nodes: no name"
    state_words = (*read_words(entry.get("state")), *read_words(entry.get("state_flags")))
    if not state_words:
        return "nodes: no state"
    if "FUTURE" in state_words:
        return None
    try:
        gpus = tuple(gres for gres in parse_gres(read_text(entry.get("gres")) or "") if gres.name == "gpu")
    except ValueError:
        return "nodes: unreadable gres"
    if sum(gpu.count for gpu in gpus) > MAX_GPUS_PER_NODE:
        return "nodes: impossible number of GPUs"
    state, state_reason = node_state(state_words)
    features = read_names(entry.get("active_features")) or read_names(entry.get("features"))
    memory_mebibytes = read_int(entry.get("real_memory"))
    node = Node(
        id=NodeId(name),
        partitions=read_names(entry.get("partitions")),
        machine_type=_machine_type(gpus, features),
        state=state,
        reason=(read_text(entry.get("reason")) or state_reason)
        if not state.is_available or state is NodeState.UNKNOWN
        else None,
        gpu_count=sum(gpu.count for gpu in gpus),
        cpu_count=read_int(entry.get("cpus")),
        memory_bytes=None if memory_mebibytes is None else memory_mebibytes * MEBIBYTE,
        features=features,
        rack=_find_rack(features),
    )
    # An idle GPU with an index is "gpu:h100:0(IDX:N/A)", one without is "gpu:0".
    used = read_text(entry.get("gres_used")) or "(IDX"
    other_names = (read_text(entry.get(key)) for key in ("hostname", "address"))
    return _ParsedNode(
        node=node,
        gpus=gpus,
        units=tuple(_iter_units(node.id, gpus, features)),
        has_index=not gpus or "(IDX" in used,
        host_names=tuple(dict.fromkeys(text for text in other_names if text and text != name)),
    )


def _find_rack(features: tuple[str, ...]) -> str | None:
    """The rack in a feature such as ``rack-r03``, ``rack_12``, ``rack=B4`` or ``rack7``; Slurm itself has no racks."""
    matches = (re.fullmatch(r"rack[-_=:]?(\w[\w.-]*)", feature, flags=re.IGNORECASE) for feature in features)
    return next((match[1] for match in matches if match), None)


def _machine_type(gpus: Sequence[Gres], features: tuple[str, ...]) -> str | None:
    """The machine type of a node; ``H100+H200`` if it has both."""
    names = dict.fromkeys(name_machine_type(gpu.type, features) for gpu in gpus)
    return "+".join(name for name in names if name) or None


def _iter_units(node: NodeId, gpus: Sequence[Gres], features: tuple[str, ...]) -> Iterator[Unit]:
    ordinal = 0
    for gpu in gpus:
        machine_type, profile = name_machine_type(gpu.type, features), gpu.mig_profile
        for _ in range(gpu.count):
            yield Unit(
                id=slurm_unit_id(node, ordinal, is_mig=profile is not None),
                kind=UnitKind.GPU if profile is None else UnitKind.MIG,
                node=node,
                index=ordinal if profile is None else None,
                machine_type=machine_type,
                mig_profile=profile,
            )
            ordinal += 1


def _gather(parsed: Sequence[_ParsedNode], dropped: Counter[str]) -> SlurmInventory:
    type_names: dict[str, set[str | None]] = {}
    partition_types: dict[str, set[str | None]] = {}
    for parsed_node in parsed:
        for gpu in parsed_node.gpus:
            if gpu.type:
                type_names.setdefault(gpu.type, set()).add(name_machine_type(gpu.type, parsed_node.node.features))
        if parsed_node.gpus:
            for partition in parsed_node.node.partitions:
                partition_types.setdefault(partition, set()).add(parsed_node.node.machine_type)
    return SlurmInventory(
        nodes=tuple(parsed_node.node for parsed_node in parsed),
        units=tuple(unit for parsed_node in parsed for unit in parsed_node.units),
        dropped=dict(dropped),
        node_units={parsed_node.node.id: tuple(unit.id for unit in parsed_node.units) for parsed_node in parsed},
        machine_types={parsed_node.node.id: parsed_node.node.machine_type for parsed_node in parsed},
        type_names={key: _only(names) for key, names in type_names.items()},
        partition_types={key: _only(names) for key, names in partition_types.items()},
        host_names={parsed_node.node.id: parsed_node.host_names for parsed_node in parsed if parsed_node.host_names},
        nodes_without_index=tuple(parsed_node.node.id for parsed_node in parsed if not parsed_node.has_index),
    )


def _only(names: set[str | None]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def parse_partitions(
    document: Mapping[str, object], inventory: SlurmInventory
) -> tuple[list[Partition], dict[str, int]]:
    """Parse partitions; also returns what was dropped. The partitions that nodes list take precedence over their node lists."""
    dropped: Counter[str] = Counter()
    members: dict[str, list[NodeId]] = {}
    for node in inventory.nodes:
        for name in node.partitions:
            members.setdefault(name, []).append(node.id)
    partitions: dict[str, Partition] = {}
    for entry in iter_entries(document, "partitions", dropped):
        result = _parse_partition(entry, members)
        if isinstance(result, str):
            dropped[result] += 1
        else:
            partitions[result.name] = result
    return list(partitions.values()), dict(dropped)


def _parse_partition(entry: dict[str, object], members: Mapping[str, Sequence[NodeId]]) -> Partition | str:
    name = read_text(entry.get("name"))
    if name is None:
        return "partitions: no name"
    nodes: Sequence[NodeId] = members.get(name, ())
    if not nodes:
        configured = entry.get("nodes")
        text = read_text(as_object(configured).get("configured") if isinstance(configured, dict) else configured)
        try:
            nodes = [NodeId(node) for node in expand_hostlist(text or "")]
        except ValueError:
            return "partitions: unreadable nodes"
    inner, maximums = as_object(entry.get("partition")), as_object(entry.get("maximums"))
    states = read_words(inner.get("state")) or read_words(entry.get("state"))
    flags = (*read_words(entry.get("flags")), *read_words(inner.get("flags")))
    return Partition(
        name=name,
        nodes=tuple(nodes),
        is_up=not states or "UP" in states,
        is_default="DEFAULT" in flags,
        max_time_s=read_minutes(maximums.get("time", entry.get("max_time_limit"))),
    )


def partitions_of_nodes(inventory: SlurmInventory) -> list[Partition]:
    """The partitions that nodes list, for when the list of partitions is unavailable."""
    members: dict[str, list[NodeId]] = {}
    for node in inventory.nodes:
        for name in node.partitions:
            members.setdefault(name, []).append(node.id)
    return [Partition(name=name, nodes=tuple(nodes)) for name, nodes in members.items()]
