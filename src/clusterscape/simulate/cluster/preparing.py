"""Converts a job trace to the jobs of a GPU cluster: GPU sharing, gangs, partitions. Counts dropped and repaired rows."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from clusterscape.errors import QueryError
from clusterscape.model.arrays import Bools, Int64s
from clusterscape.model.jobs import CleaningNote, JobTrace
from clusterscape.simulate.batch.contract import Estimates
from clusterscape.simulate.batch.preparing import (
    drop_rows,
    note_rows,
    number_jobs,
    number_users,
    read_times,
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
    """Jobs for the cluster's nodes, and notes on dropped and repaired rows. ``partition_of`` and ``priority_of``: by queue.

    A queue without an entry that is not the name of a partition goes to the first one. Raises QueryError if no job is left.
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
    requests_nothing = pl.col("_size").fill_null(0.0) <= 0
    if has_cpus and trace.size_unit == "gpus":
        requests_nothing = requests_nothing & (pl.col("processors").fill_null(0) <= 0)
    frame = drop_rows(notes, f"requests no {trace.size_unit}", frame, requests_nothing)
    frame = _with_partitions(frame, cluster, partition_of or {})
    frame = _drop_above_limits(notes, frame, cluster)
    if frame.height == 0:
        raise QueryError(
            f"no job of {trace.name} can be simulated on this cluster", hint="\n".join(str(note) for note in notes)
        )
    note_rows(notes, "repaired", "run time below 1 s: counts as 1 s", frame, pl.col("run_s") < 1)
    jobs = _to_jobs(frame, trace, cluster, estimates, semantics, priority_of or {}, has_cpus=has_cpus)
    possible = _can_ever_run(jobs, cluster)
    frame = frame.with_columns(pl.Series("_possible", possible))
    drop_rows(notes, "fits on no node of its partition, or on too few", frame, ~pl.col("_possible"))
    if not possible.any():
        raise QueryError(f"no job of {trace.name} fits on this cluster", hint="\n".join(str(note) for note in notes))
    possible_jobs = ClusterJobs(*(getattr(jobs, name)[possible] for name in jobs.__slots__))
    return possible_jobs, tuple(notes)


def _with_partitions(frame: pl.DataFrame, cluster: Cluster, partition_of: Mapping[str, str]) -> pl.DataFrame:
    indices = {partition.name: index for index, partition in enumerate(cluster.partitions)}
    unknown = sorted(set(partition_of.values()) - set(indices))
    if unknown:
        raise QueryError(f"unknown partition {unknown[0]!r}", hint=f"Choose one of: {', '.join(indices)}.")
    partition_by_queue = indices | {queue: indices[name] for queue, name in partition_of.items()}
    queues = frame["queue"].fill_null("").to_list()
    return frame.with_columns(pl.Series("_partition", [partition_by_queue.get(queue, 0) for queue in queues], pl.Int64))


def _drop_above_limits(notes: list[CleaningNote], frame: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    """Drop jobs above the limits of their partitions."""
    for place, partition in enumerate(cluster.partitions):
        in_partition = pl.col("_partition") == place
        if partition.max_gpus_per_job is not None:
            reason = f"larger than partition {partition.name} allows ({partition.max_gpus_per_job:,} GPUs)"
            frame = drop_rows(notes, reason, frame, in_partition & (pl.col("_size") > partition.max_gpus_per_job))
        if partition.max_run_s is not None:
            reason = f"requests more time than partition {partition.name} allows ({partition.max_run_s:,} s)"
            requested = pl.col("requested_s").fill_null(pl.col("run_s"))
            frame = drop_rows(notes, reason, frame, in_partition & (requested > partition.max_run_s))
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
    run_s, request_s = read_times(frame, semantics)
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
    zeros = np.zeros(frame.height, np.int64)
    return ClusterJobs(
        row=np.ascontiguousarray(frame["row"].cast(pl.Int64).to_numpy()),
        submit_s=to_seconds(frame["submit_s"], semantics),
        run_s=run_s,
        estimate_s=run_s if estimates == "actual" else request_s,
        nodes=nodes,
        gpus=gpus,
        units=np.maximum(1, np.rint(share * UNITS_PER_GPU)).astype(np.int64),
        cpu_milli=zeros + np.asarray(processors * 1000) // nodes,
        memory_mib=zeros,
        models=zeros,
        partition=partition.astype(np.int64),
        user=number_users(frame),
        priority=np.array([priority_of.get(queue, 0) for queue in queues], np.int64),
        number=number_jobs(frame),
    )


def _can_ever_run(jobs: ClusterJobs, cluster: Cluster) -> Bools:
    """Whether enough empty nodes of its partition can host a part of each job."""
    columns = (jobs.partition, jobs.gpus, jobs.cpu_milli, jobs.memory_mib, jobs.models)
    demands, demand_of = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    hosting = np.zeros(len(demands), np.int64)
    for place, (partition, gpus, cpu, memory, models) in enumerate(demands.tolist()):
        is_model = (models == 0) | ((models >> cluster.model) & 1 == 1) | (gpus == 0)
        has_room = (cluster.gpus >= gpus) & (cluster.cpu_milli >= cpu) & (cluster.memory_mib >= memory)
        hosting[place] = int((has_room & is_model & (cluster.partition == partition)).sum())
    return np.asarray(hosting[demand_of.reshape(-1)] >= jobs.nodes)
