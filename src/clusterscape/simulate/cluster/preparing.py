"""From a job trace to the jobs of a GPU cluster: shares, gangs, partitions. What cannot run is left out and counted."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.model.samples import Int64s
from clusterscape.simulate.batch.contract import Bools, Estimates
from clusterscape.simulate.batch.preparing import (
    drop_rows,
    note_rows,
    number_jobs,
    number_users,
    take_times,
    to_seconds,
)
from clusterscape.simulate.batch.semantics import Semantics
from clusterscape.simulate.cluster.contract import Cluster, ClusterJobs
from clusterscape.simulate.placing import UNITS_PER_GPU


def prepare_cluster_jobs(
    trace: JobTrace,
    cluster: Cluster,
    *,
    estimates: Estimates,
    semantics: Semantics,
    partition_of: Mapping[str, str] | None = None,
    priority_of: Mapping[str, int] | None = None,
) -> tuple[ClusterJobs, tuple[CleaningNote, ...]]:
    """Jobs for the cluster's nodes, and what was done to get them. ``partition_of`` and ``priority_of`` go by a job's queue.

    A queue that is no partition's name and has no entry goes to the first partition. Raises QueryError where no job is left.
    """
    if trace.size_unit == "processors":
        raise QueryError(
            f"{trace.name} counts processors, not GPUs or nodes",
            hint="Simulate it with --processors, without a cluster.",
        )
    notes: list[CleaningNote] = []
    frame = trace.frame.with_row_index("row").with_columns(trace.size.cast(pl.Float64).alias("_size"))
    frame = drop_rows(notes, "never ran", frame, pl.col("run_s").is_null())
    has_cpus = bool((cluster.cpu_milli > 0).any())
    asks_nothing = pl.col("_size").fill_null(0.0) <= 0
    if has_cpus and trace.size_unit == "gpus":
        asks_nothing = asks_nothing & (pl.col("processors").fill_null(0) <= 0)
    frame = drop_rows(notes, f"asks for no {trace.size_unit}", frame, asks_nothing)
    frame = _with_partitions(frame, cluster, partition_of or {})
    frame = _limited(notes, frame, cluster)
    if frame.height == 0:
        raise QueryError(
            f"no job of {trace.name} can be simulated on this cluster", hint="\n".join(str(note) for note in notes)
        )
    note_rows(notes, "repaired", "runs less than a second: taken as one", frame, pl.col("run_s") < 1)
    jobs = _to_jobs(frame, trace, cluster, estimates, semantics, priority_of or {}, has_cpus=has_cpus)
    possible = _can_ever_run(jobs, cluster)
    frame = frame.with_columns(pl.Series("_possible", possible))
    drop_rows(notes, "fits on no node of its partition, or on too few", frame, ~pl.col("_possible"))
    if not possible.any():
        raise QueryError(f"no job of {trace.name} fits on this cluster", hint="\n".join(str(note) for note in notes))
    kept = ClusterJobs(*(getattr(jobs, name)[possible] for name in jobs.__slots__))
    return kept, tuple(notes)


def _with_partitions(frame: pl.DataFrame, cluster: Cluster, partition_of: Mapping[str, str]) -> pl.DataFrame:
    places = {partition.name: place for place, partition in enumerate(cluster.partitions)}
    unknown = sorted(set(partition_of.values()) - set(places))
    if unknown:
        raise QueryError(f"there is no partition {unknown[0]!r}", hint=f"There are {', '.join(places)}.")
    codes = {queue: places[name] for queue, name in partition_of.items()}
    known = places | codes
    queues = frame["queue"].fill_null("").to_list()
    return frame.with_columns(pl.Series("_partition", [known.get(queue, 0) for queue in queues], pl.Int64))


def _limited(notes: list[CleaningNote], frame: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    """Without what the limits of partitions refuse."""
    for place, partition in enumerate(cluster.partitions):
        here = pl.col("_partition") == place
        if partition.max_gpus_per_job is not None:
            reason = f"larger than partition {partition.name} allows ({partition.max_gpus_per_job:,} GPUs)"
            frame = drop_rows(notes, reason, frame, here & (pl.col("_size") > partition.max_gpus_per_job))
        if partition.max_run_s is not None:
            reason = f"asks for longer than partition {partition.name} allows ({partition.max_run_s:,} s)"
            wanted = pl.col("requested_s").fill_null(pl.col("run_s"))
            frame = drop_rows(notes, reason, frame, here & (wanted > partition.max_run_s))
    return frame


def _largest(cluster: Cluster, partition: Int64s) -> Int64s:
    """GPUs of the largest node of each job's partition, at least 1."""
    most = np.zeros(len(cluster.partitions), np.int64)
    np.maximum.at(most, cluster.partition, cluster.gpus)
    return np.maximum(most[partition], 1)


def _to_jobs(
    frame: pl.DataFrame,
    trace: JobTrace,
    cluster: Cluster,
    estimates: Estimates,
    semantics: Semantics,
    priority_of: Mapping[str, int],
    *,
    has_cpus: bool,
) -> ClusterJobs:
    run_s, request_s = take_times(frame, semantics)
    size = frame["_size"].fill_null(0.0).to_numpy()
    partition = frame["_partition"].to_numpy()
    largest = _largest(cluster, partition)
    if trace.size_unit == "nodes":  # whole nodes, with all their GPUs
        nodes, gpus = np.ceil(size).astype(np.int64), largest
    else:
        whole = np.ceil(size).astype(np.int64)
        stated = frame["nodes"].fill_null(1).to_numpy().astype(np.int64)
        nodes = np.maximum(np.maximum(stated, 1), -(-whole // largest))
        nodes = np.where(whole == 0, 1, np.minimum(nodes, np.maximum(whole, 1)))
        gpus = -(-whole // nodes)
    share = np.where((size > 0) & (size < 1) & (trace.size_unit == "gpus"), size, 1.0)
    processors = frame["processors"].fill_null(0).to_numpy() if has_cpus and trace.size_unit == "gpus" else 0
    queues = frame["queue"].fill_null("").to_list()
    none = np.zeros(frame.height, np.int64)
    return ClusterJobs(
        row=np.ascontiguousarray(frame["row"].cast(pl.Int64).to_numpy()),
        submit_s=to_seconds(frame["submit_s"], semantics),
        run_s=run_s,
        estimate_s=run_s if estimates == "actual" else request_s,
        nodes=nodes,
        gpus=gpus,
        units=np.maximum(1, np.rint(share * UNITS_PER_GPU)).astype(np.int64),
        cpu_milli=none + np.asarray(processors * 1000) // nodes,
        memory_mib=none,
        models=none,
        partition=partition.astype(np.int64),
        user=number_users(frame),
        priority=np.array([priority_of.get(queue, 0) for queue in queues], np.int64),
        number=number_jobs(frame),
    )


def _can_ever_run(jobs: ClusterJobs, cluster: Cluster) -> Bools:
    """Whether enough empty nodes of its partition can host a part of each job."""
    columns = (jobs.partition, jobs.gpus, jobs.cpu_milli, jobs.memory_mib, jobs.models)
    wishes, wish_of = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    hosting = np.zeros(len(wishes), np.int64)
    for place, (partition, gpus, cpu, memory, models) in enumerate(wishes.tolist()):
        is_model = (models == 0) | ((models >> cluster.model) & 1 == 1) | (gpus == 0)
        has_room = (cluster.gpus >= gpus) & (cluster.cpu_milli >= cpu) & (cluster.memory_mib >= memory)
        hosting[place] = int((has_room & is_model & (cluster.partition == partition)).sum())
    return np.asarray(hosting[wish_of.reshape(-1)] >= jobs.nodes)
