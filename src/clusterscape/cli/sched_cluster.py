"""``clusterscape sched simulate --cluster``: reads, simulates and measures a cluster of GPU nodes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterscape.cli.output import listing_table, print_json, stderr, stdout
from clusterscape.cli.sched_output import SwfJobs, print_notes, print_sizes, run_with_progress, write_swf_jobs
from clusterscape.errors import QueryError
from clusterscape.model.jobs import JobTrace
from clusterscape.simulate.batch import Spread, find_policy
from clusterscape.simulate.batch.measures import SizeClass, compare_sizes
from clusterscape.simulate.cluster import (
    ClusterMeasures,
    ClusterScenario,
    ClusterSchedule,
    compute_cluster_measures,
    measure_cluster_spread,
    simulate_cluster,
)
from clusterscape.simulate.placing import UNITS_PER_GPU

if TYPE_CHECKING:
    from clusterscape.cli.sched import EstimatesChoice
    from clusterscape.model.jobs import CleaningNote
    from clusterscape.simulate.cluster import Cluster
    from clusterscape.simulate.faults import NodeFault


_NODE_KEYS = {"count", "name", "gpus", "model", "cpus", "memory_gib", "partition", "mig_slices"}
_PARTITION_KEYS = {"name", "max_gpus_per_job", "max_hours", "max_gpus_per_user"}
_OUTAGE_KEYS = {"node", "kind", "from_s", "to_s"}
_KEYS = {"nodes", "partitions", "outages", "queues", "priorities"}


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """A cluster file: nodes, partitions, outages, and partitions and priorities of the trace's queues."""

    cluster: Cluster
    faults: tuple[NodeFault, ...] = ()
    partition_of: Mapping[str, str] = field(default_factory=dict)
    priority_of: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterChoices:
    """Options of the simulation, except the cluster."""

    policy: str
    backfill: str
    placement: str
    estimates: EstimatesChoice
    omega: float
    queue: float
    preempts: bool
    checkpoint_minutes: float | None
    seed: int


def read_cluster(path: Path | None, nodes: str | None) -> ClusterFile:
    """Read a TOML file, a node list of openb (CSV), or ``100x8``: 100 nodes with 8 GPUs."""
    if path is None:
        return ClusterFile(_plain_cluster(nodes or ""))
    if path.suffix == ".toml":
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise QueryError(f"{path} cannot be read: {error}", hint="See docs/guide/gpu-clusters.md.") from error
        return parse_cluster(table, str(path))
    return ClusterFile(_openb_cluster(path))


def _plain_cluster(nodes: str) -> Cluster:
    count, _, gpus = nodes.lower().partition("x")
    is_product = all(re.fullmatch(r"[1-9]\d{0,8}", number, re.ASCII) for number in (count, gpus))
    if not is_product:
        raise QueryError(f"invalid --nodes {nodes!r}", hint="Write 100x8 for 100 nodes with 8 GPUs, or use --cluster.")
    return parse_cluster({"nodes": [{"count": int(count), "gpus": int(gpus)}]}, nodes).cluster


def _openb_cluster(path: Path) -> Cluster:
    from clusterscape.collect.job_traces.openb import read_openb_nodes

    frame = read_openb_nodes(path).frame
    rows = [
        {"name": name, "cpus": cpu / 1000, "memory_gib": memory / 1024, "gpus": gpus, "model": model or ""}
        for name, cpu, memory, gpus, model in frame.iter_rows()
    ]
    return parse_cluster({"nodes": rows}, str(path)).cluster


def parse_cluster(table: Mapping[str, Any], where: str) -> ClusterFile:
    """Parse the contents of a cluster file; raises QueryError at the first error."""
    _check_keys(table, _KEYS, where)
    rows = _expand(table.get("nodes", []), where)
    partitions = [str(entry["name"]) for entry in _entries(table, "partitions", _PARTITION_KEYS, where)]
    for row in rows:
        if row["partition"] not in partitions:
            partitions.append(row["partition"])
    cluster = _build(rows, partitions, _entries(table, "partitions", _PARTITION_KEYS, where), where)
    return ClusterFile(
        cluster,
        _faults(_entries(table, "outages", _OUTAGE_KEYS, where), where),
        {str(queue): str(name) for queue, name in table.get("queues", {}).items()},
        {str(queue): int(priority) for queue, priority in table.get("priorities", {}).items()},
    )


MAX_NODES = 100_000
MAX_GPUS_PER_NODE = 1024
MAX_NUMBER = 10**9


def _check_keys(table: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise QueryError(f"{where}: unknown key {unknown[0]!r}", hint=f"Allowed: {', '.join(sorted(allowed))}.")


def _entries(table: Mapping[str, Any], name: str, allowed: set[str], where: str) -> list[dict[str, Any]]:
    entries = table.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise QueryError(f"{where}: {name} must be a list of tables", hint=f"Write [[{name}]] above each.")
    for entry in entries:
        _check_keys(entry, allowed, f"{where}, {name}")
    return entries


def _expand(groups: Any, where: str) -> list[dict[str, Any]]:
    """One row per node; the nodes of a group are numbered: name-0001, …"""
    rows: list[dict[str, Any]] = []
    for group in _entries({"nodes": groups}, "nodes", _NODE_KEYS, where):
        count = group.get("count", 1)
        numbers = [group.get(key, 0) for key in ("gpus", "cpus", "memory_gib", "mig_slices")]
        if (
            not isinstance(count, int)
            or count < 1
            or not all(isinstance(number, int | float) and number >= 0 for number in numbers)
        ):
            raise QueryError(f"{where}: count must be at least 1, and gpus, cpus, memory_gib and mig_slices at least 0")
        if len(rows) + count > MAX_NODES or numbers[0] > MAX_GPUS_PER_NODE or not max(numbers) <= MAX_NUMBER:
            raise QueryError(
                f"{where}: more than {MAX_NODES:,} nodes, {MAX_GPUS_PER_NODE:,} GPUs on a node, or {MAX_NUMBER:,} of anything",
                hint="Is there a digit too many?",
            )
        prefix = str(group.get("name", f"node{len(rows)}" if rows else "node"))
        names = (
            [prefix] if "name" in group and count == 1 else [f"{prefix}-{index:04d}" for index in range(1, count + 1)]
        )
        defaults = {"partition": str(group.get("partition", "all")), "model": str(group.get("model", ""))}
        rows += [dict(group) | defaults | {"name": name} for name in names]
    if not rows:
        raise QueryError(f"{where}: no nodes", hint="Write [[nodes]] with count and gpus.")
    return rows


def _build(rows: list[dict[str, Any]], partitions: list[str], limits: list[dict[str, Any]], where: str) -> Cluster:
    import numpy as np

    from clusterscape.simulate.cluster import Cluster, NodePool

    models = sorted({row["model"] for row in rows})
    limits_by_name = {str(entry["name"]): entry for entry in limits}
    has_cpus = any("cpus" in row for row in rows)

    def column(values: list[float]) -> Any:
        return np.array([round(value) for value in values], np.int64)

    def limit(name: str) -> NodePool:
        entry = limits_by_name.get(name, {})
        hours = entry.get("max_hours")
        return NodePool(
            name,
            entry.get("max_gpus_per_job"),
            None if hours is None else round(hours * 3600),
            entry.get("max_gpus_per_user"),
        )

    if has_cpus and not all("cpus" in row for row in rows):
        raise QueryError(f"{where}: set cpus for all groups of nodes, or for none")
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
                f"{where}: invalid outage: {error}; it needs node, kind (fail or drain), from_s, and optionally to_s"
            ) from error
    return tuple(faults)


def make_cluster_scenario(
    trace: JobTrace, cluster_file: ClusterFile, choices: ClusterChoices
) -> tuple[ClusterScenario, tuple[CleaningNote, ...]]:
    """Build the scenario. Times of outages are relative to the first submission."""
    from dataclasses import replace
    from typing import cast

    from clusterscape.simulate.batch import PRESETS, Backfill, BackfillKind, find_policy
    from clusterscape.simulate.cluster import ClusterScenario, prepare_cluster_jobs
    from clusterscape.simulate.placements import find_placement

    preset = PRESETS["clusterscape"]
    jobs, notes = prepare_cluster_jobs(
        trace,
        cluster_file.cluster,
        estimates=choices.estimates,
        semantics=preset,
        partition_of=cluster_file.partition_of,
        priority_of=cluster_file.priority_of,
    )
    origin_s = int(jobs.submit_s[0])
    faults = tuple(
        replace(fault, from_s=fault.from_s + origin_s, to_s=None if fault.to_s is None else fault.to_s + origin_s)
        for fault in cluster_file.faults
    )
    checkpoint = choices.checkpoint_minutes
    scenario = ClusterScenario(
        cluster_file.cluster,
        jobs,
        find_policy(choices.policy),
        Backfill(cast("BackfillKind", choices.backfill), share=choices.omega, whole_at=choices.queue),
        find_placement(choices.placement),
        choices.estimates,
        preset,
        faults,
        preempts=choices.preempts,
        checkpoint_s=None if checkpoint is None else max(1, round(checkpoint * 60)),
        seed=choices.seed,
    )
    return scenario, notes


def to_json(
    trace: JobTrace,
    notes: tuple[CleaningNote, ...],
    schedule: ClusterSchedule,
    measures: ClusterMeasures | None,
    spreads: Mapping[str, Spread],
    sizes: tuple[SizeClass, ...],
    choices: ClusterChoices,
    output: Path | None,
) -> dict[str, Any]:
    """The result as JSON."""
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
        "sizes": [asdict(size_class) | {"is_starved": size_class.is_starved} for size_class in sizes],
        "notes": [asdict(note) for note in (*trace.notes, *notes)],
        "fingerprint": scenario.fingerprint(),
        "output": None if output is None else str(output),
    }


_LABELS = {
    "wait_s": ("wait", "s", 1),
    "bounded_slowdown": ("bounded slowdown", "", 2),
    "utilization": ("utilization", "", 4),
    "violation_s": ("violation", "s", 1),
    "fragmentation": ("fragmentation (FGD), of all GPUs", "", 4),
    "blocked_gpu_hours": ("idle, but not usable by the first waiting job", "GPU h", 1),
    "lost_gpu_hours": ("work lost", "GPU h", 1),
    "interrupted_jobs": ("jobs interrupted", "", 0),
    "fairness": ("fairness over users (Jain)", "", 3),
    "unfinished_jobs": ("unfinished jobs", "", 0),
}


def simulate_cluster_trace(
    trace: JobTrace,
    cluster_file: ClusterFile,
    choices: ClusterChoices,
    jitter: int,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Simulate, compute measures and print them; optionally write the schedule."""
    scenario, notes = make_cluster_scenario(trace, cluster_file, choices)
    label = f"simulating {len(scenario.jobs):,} jobs on {scenario.cluster.total_gpus:,} GPUs"
    schedule = run_with_progress(label, len(scenario.jobs), lambda done: simulate_cluster(scenario, done))
    measures = compute_cluster_measures(schedule)
    spreads = measure_cluster_spread(scenario, simulate_cluster, runs=jitter) if jitter else {}
    sizes = compare_with_fcfs(scenario, schedule)
    if output is not None:
        write_cluster_swf(output, trace, schedule)
    if as_json:
        print_json(to_json(trace, notes, schedule, measures, spreads, sizes, choices, output))
        return
    stdout.print(
        f"{trace.name} ({trace.format}): {len(scenario.jobs):,} jobs on {len(scenario.cluster):,} nodes with "
        f"{scenario.cluster.total_gpus:,} GPUs, {choices.policy}, {choices.backfill}, placement {choices.placement}",
        highlight=False,
    )
    if measures is not None:
        _print_measures(measures, spreads)
    print_sizes(sizes, "GPUs")
    stdout.print(f"fingerprint {scenario.fingerprint()[:16]}", style="dim", highlight=False)
    print_notes((*trace.notes, *notes))
    if output is not None:
        stderr.print(f"Schedule written to {output}.", highlight=False)


def compare_with_fcfs(scenario: ClusterScenario, schedule: ClusterSchedule) -> tuple[SizeClass, ...]:
    """Waits by size, compared with first come, first served on the same cluster if that is not the policy."""
    gpus = -(-scenario.jobs.total_units // UNITS_PER_GPU)
    started = schedule.has_started
    fcfs = find_policy("fcfs")
    if repr(scenario.policy) == repr(fcfs):
        return compare_sizes(schedule.wait_s[started], gpus[started])
    reference = simulate_cluster(replace(scenario, policy=fcfs))
    both = started & reference.has_started
    return compare_sizes(schedule.wait_s[both], gpus[both], reference.wait_s[both])


def _print_measures(measures: ClusterMeasures, spreads: Mapping[str, Spread]) -> None:
    table = listing_table()
    for heading in ("measure", "value", "with ±1 s run times"):
        table.add_column(heading, justify="left" if heading == "measure" else "right", no_wrap=True)
    for name, (label, unit, digits) in _LABELS.items():
        value, spread = getattr(measures, name), spreads.get(name)
        text = "–" if value is None else f"{value:,.{digits}f} {unit}".rstrip()
        interval = "" if spread is None else f"{spread.mean:,.{digits}f} ± {spread.sd:,.{digits}f}"
        table.add_row(label, text, interval)
    stdout.print(table, highlight=False)


def write_cluster_swf(path: Path, trace: JobTrace, schedule: ClusterSchedule) -> None:
    """Write every job that ended, with its simulated wait; sizes are whole GPUs, run times include lost work."""
    scenario, ended = schedule.scenario, schedule.has_ended
    jobs = scenario.jobs
    table = SwfJobs(
        row=jobs.row[ended],
        submit_s=jobs.submit_s[ended],
        wait_s=schedule.wait_s[ended],
        run_s=(schedule.end_s - schedule.start_s)[ended],
        size=np.maximum(1, -(-jobs.total_units // UNITS_PER_GPU))[ended],
        request_s=jobs.estimate_s[ended],
        user=jobs.user[ended],
    )
    write_swf_jobs(path, trace, table, scenario.cluster.total_gpus, scenario.fingerprint())
