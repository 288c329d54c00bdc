"""``clusterscape sched simulate --cluster``: a cluster of GPU nodes read from TOML or a list of nodes, simulated and told."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterscape.errors import QueryError

if TYPE_CHECKING:
    from clusterscape.cli.sched import EstimatesChoice
    from clusterscape.model.jobs import CleaningNote, JobTrace
    from clusterscape.simulate.batch import Spread
    from clusterscape.simulate.cluster import Cluster, ClusterMeasures, ClusterScenario, ClusterSchedule
    from clusterscape.simulate.fairness import SizeClass
    from clusterscape.simulate.faults import NodeFault

_NODE_KEYS = {"count", "name", "gpus", "model", "cpus", "memory_gib", "partition", "mig_slices"}
_PARTITION_KEYS = {"name", "max_gpus_per_job", "max_hours", "max_gpus_per_user"}
_OUTAGE_KEYS = {"node", "kind", "from_s", "to_s"}
_KEYS = {"nodes", "partitions", "outages", "queues", "priorities"}


@dataclass(frozen=True, slots=True)
class Described:
    """A cluster file: nodes and partitions, outages, and what becomes of a trace's queues."""

    cluster: Cluster
    faults: tuple[NodeFault, ...] = ()
    partition_of: Mapping[str, str] = field(default_factory=dict)
    priority_of: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterChoices:
    """What the command was told besides the cluster."""

    policy: str
    backfill: str
    placement: str
    estimates: EstimatesChoice
    omega: float
    queue: float
    preempts: bool
    checkpoint_minutes: float | None
    seed: int


def read_cluster(path: Path | None, nodes: str | None) -> Described:
    """From a TOML file, a list of nodes as openb has it (CSV), or ``100x8``: as many nodes of so many GPUs."""
    if path is None:
        return Described(_plain_cluster(nodes or ""))
    if path.suffix == ".toml":
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise QueryError(f"{path} cannot be read: {error}", hint="docs/guide/gpu-clusters.md shows one.") from error
        return describe(table, str(path))
    return Described(_openb_cluster(path))


def _plain_cluster(nodes: str) -> Cluster:
    count, _, gpus = nodes.lower().partition("x")
    if not (count.isdigit() and gpus.isdigit() and int(count) and int(gpus)):
        raise QueryError(f"{nodes!r} is no cluster", hint="Say 100x8 for 100 nodes of 8 GPUs, or give --cluster.")
    return describe({"nodes": [{"count": int(count), "gpus": int(gpus)}]}, nodes).cluster


def _openb_cluster(path: Path) -> Cluster:
    from clusterscape.collect.job_traces.openb import read_openb_nodes

    frame = read_openb_nodes(path).frame
    rows = [
        {"name": name, "cpus": cpu / 1000, "memory_gib": memory / 1024, "gpus": gpus, "model": model or ""}
        for name, cpu, memory, gpus, model in frame.iter_rows()
    ]
    return describe({"nodes": rows}, str(path)).cluster


def describe(table: Mapping[str, Any], where: str) -> Described:
    """What a cluster file says; raises QueryError at the first thing that is not understood."""
    _check(table, _KEYS, where)
    rows = _expand(table.get("nodes", []), where)
    partitions = [str(entry["name"]) for entry in _entries(table, "partitions", _PARTITION_KEYS, where)]
    for row in rows:
        if row["partition"] not in partitions:
            partitions.append(row["partition"])
    cluster = _build(rows, partitions, _entries(table, "partitions", _PARTITION_KEYS, where), where)
    return Described(
        cluster,
        _faults(_entries(table, "outages", _OUTAGE_KEYS, where), where),
        {str(queue): str(name) for queue, name in table.get("queues", {}).items()},
        {str(queue): int(priority) for queue, priority in table.get("priorities", {}).items()},
    )


def _check(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise QueryError(f"{where}: {unknown[0]!r} is not known here", hint=f"There are {', '.join(sorted(known))}.")


def _entries(table: Mapping[str, Any], name: str, known: set[str], where: str) -> list[dict[str, Any]]:
    entries = table.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise QueryError(f"{where}: {name} is a list of tables", hint=f"Write [[{name}]] above each.")
    for entry in entries:
        _check(entry, known, f"{where}, {name}")
    return entries


def _expand(groups: Any, where: str) -> list[dict[str, Any]]:
    """One row per node. A group of several is numbered: name-0001, …"""
    rows: list[dict[str, Any]] = []
    for group in _entries({"nodes": groups}, "nodes", _NODE_KEYS, where):
        count = group.get("count", 1)
        numbers = [group.get(key, 0) for key in ("gpus", "cpus", "memory_gib", "mig_slices")]
        if (
            not isinstance(count, int)
            or count < 1
            or not all(isinstance(one, int | float) and one >= 0 for one in numbers)
        ):
            raise QueryError(f"{where}: a group of nodes has a count from 1 on and numbers from 0 on")
        prefix = str(group.get("name", f"node{len(rows)}" if rows else "node"))
        names = [prefix] if "name" in group and count == 1 else [f"{prefix}-{at:04d}" for at in range(1, count + 1)]
        about = {"partition": str(group.get("partition", "all")), "model": str(group.get("model", ""))}
        rows += [dict(group) | about | {"name": name} for name in names]
    if not rows:
        raise QueryError(f"{where}: a cluster has nodes", hint="Write [[nodes]] with count and gpus.")
    return rows


def _build(rows: list[dict[str, Any]], partitions: list[str], limits: list[dict[str, Any]], where: str) -> Cluster:
    import numpy as np

    from clusterscape.simulate.cluster import Cluster, Partition

    models = sorted({row["model"] for row in rows})
    stated = {str(entry["name"]): entry for entry in limits}
    has_cpus = any("cpus" in row for row in rows)

    def column(values: list[float]) -> Any:
        return np.array([round(value) for value in values], np.int64)

    def limit(name: str) -> Partition:
        entry = stated.get(name, {})
        hours = entry.get("max_hours")
        return Partition(
            name,
            entry.get("max_gpus_per_job"),
            None if hours is None else round(hours * 3600),
            entry.get("max_gpus_per_user"),
        )

    if has_cpus and not all("cpus" in row for row in rows):
        raise QueryError(f"{where}: either all groups of nodes say their cpus or none")
    return Cluster(
        names=tuple(row["name"] for row in rows),
        gpus=column([row.get("gpus", 0) for row in rows]),
        cpu_milli=column([row.get("cpus", 0) * 1000 for row in rows]),
        memory_mib=column([row.get("memory_gib", 0) * 1024 for row in rows]),
        model=column([models.index(row["model"]) for row in rows]),
        models=tuple(models),
        partition=column([partitions.index(row["partition"]) for row in rows]),
        slices=column([row.get("mig_slices", 0) for row in rows]),
        partitions=tuple(limit(name) for name in partitions),
    )


def _faults(entries: list[dict[str, Any]], where: str) -> tuple[NodeFault, ...]:
    from clusterscape.simulate.faults import FaultKind, NodeFault

    faults = []
    for entry in entries:
        try:
            kind = FaultKind(entry.get("kind", "fail"))
            faults.append(NodeFault(node=entry["node"], kind=kind, from_s=int(entry["from_s"]), to_s=entry.get("to_s")))
        except (KeyError, ValueError, TypeError) as error:
            raise QueryError(
                f"{where}: an outage has a node, a kind (fail or drain), from_s and perhaps to_s: {error}"
            ) from error
    return tuple(faults)


def make_cluster_scenario(
    trace: JobTrace, described: Described, choices: ClusterChoices
) -> tuple[ClusterScenario, tuple[CleaningNote, ...]]:
    """The simulation that was asked for. Times of outages count from the first submission."""
    from dataclasses import replace
    from typing import cast

    from clusterscape.simulate.batch import PRESETS, Backfill, BackfillKind, find_policy
    from clusterscape.simulate.cluster import ClusterScenario, prepare_cluster_jobs
    from clusterscape.simulate.placements import find_placement

    how = PRESETS["clusterscape"]
    jobs, notes = prepare_cluster_jobs(
        trace,
        described.cluster,
        estimates=choices.estimates,
        semantics=how,
        partition_of=described.partition_of,
        priority_of=described.priority_of,
    )
    origin_s = int(jobs.submit_s[0])
    faults = tuple(
        replace(fault, from_s=fault.from_s + origin_s, to_s=None if fault.to_s is None else fault.to_s + origin_s)
        for fault in described.faults
    )
    checkpoint = choices.checkpoint_minutes
    scenario = ClusterScenario(
        described.cluster,
        jobs,
        find_policy(choices.policy),
        Backfill(cast("BackfillKind", choices.backfill), share=choices.omega, whole_at=choices.queue),
        find_placement(choices.placement),
        choices.estimates,
        how,
        faults,
        preempts=choices.preempts,
        checkpoint_s=None if checkpoint is None else max(1, round(checkpoint * 60)),
        seed=choices.seed,
    )
    return scenario, notes


def to_answer(
    trace: JobTrace,
    notes: tuple[CleaningNote, ...],
    schedule: ClusterSchedule,
    measures: ClusterMeasures | None,
    spreads: Mapping[str, Spread],
    sizes: tuple[SizeClass, ...],
    choices: ClusterChoices,
    output: Path | None,
) -> dict[str, Any]:
    """Everything as JSON."""
    scenario = schedule.scenario
    return {
        "trace": trace.name,
        "format": trace.format,
        "jobs": len(scenario.jobs),
        "nodes": len(scenario.cluster),
        "gpus": scenario.cluster.total_gpus,
        **asdict(choices),
        "semantics": {"name": "clusterscape"} | asdict(scenario.semantics),
        "measures": None if measures is None else asdict(measures),
        "intervals": {name: asdict(spread) for name, spread in spreads.items()},
        "sizes": [asdict(one) | {"is_starved": one.is_starved} for one in sizes],
        "notes": [asdict(note) for note in (*trace.notes, *notes)],
        "fingerprint": scenario.fingerprint(),
        "output": None if output is None else str(output),
    }
