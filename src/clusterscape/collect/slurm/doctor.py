"""Checks for ``clusterscape doctor``: queries every part of Slurm once and reports what is wrong, or a summary."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from clusterscape.collect.slurm.faults import version_of
from clusterscape.collect.slurm.parse_jobs import parse_jobs
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_nodes
from clusterscape.collect.slurm.source import NAME, SlurmResponse, SlurmSource, fetch_timed, status_of
from clusterscape.collect.slurm.values import as_list, as_object, read_text
from clusterscape.model import SourceStatus, UnixMs
from clusterscape.model.durations import HOUR_S


async def check_source(source: SlurmSource, now_ms: UnixMs, *, has_history: bool) -> list[SourceStatus]:
    """One status per part: nodes, GPU indices, partitions, queue and, if ``has_history``, accounting."""
    now_s = now_ms // 1000
    nodes, partitions, jobs = await asyncio.gather(
        fetch_timed(source.fetch_nodes()), fetch_timed(source.fetch_partitions()), fetch_timed(source.fetch_jobs())
    )
    inventory = parse_nodes(nodes.document) if nodes.document is not None else SlurmInventory()
    statuses = [
        _check_nodes(nodes, inventory, source, now_ms),
        status_of("partitions", partitions, now_ms),
        _check_queue(jobs, inventory, now_ms),
    ]
    if inventory.units:
        statuses.append(_check_indices(inventory, now_ms))
    if has_history:
        accounting = await fetch_timed(source.fetch_history(now_s - HOUR_S, now_s))
        statuses.append(_check_accounting(accounting, jobs.document or {}, now_ms))
    return statuses


def _check_nodes(
    response: SlurmResponse, inventory: SlurmInventory, source: SlurmSource, now_ms: UnixMs
) -> SourceStatus:
    status = status_of("nodes", response, now_ms)
    if response.document is None:
        return status
    with_gpus = sum(node.gpu_count > 0 for node in inventory.nodes)
    if not with_gpus:
        return replace(
            status,
            is_ok=False,
            message=f"none of {len(inventory.nodes)} nodes has GPUs configured in Slurm",
            hint="Set GresTypes=gpu and Gres=gpu:TYPE:COUNT for the nodes in slurm.conf, and list the devices in gres.conf.",
        )
    release = version_of(response.document) or "of unknown version"
    summary = f"{source.describe()}, Slurm {release}: {len(inventory.nodes)} nodes, {with_gpus} with GPUs"
    return replace(status, message=f"{summary} ({len(inventory.units)} in all)")


def _check_indices(inventory: SlurmInventory, now_ms: UnixMs) -> SourceStatus:
    """Whether Slurm gives GPU indices: only then is it known which GPU a job holds."""
    unnumbered = inventory.nodes_without_index
    status = SourceStatus(source=f"{NAME} GPU indices", kind=NAME, is_ok=not unnumbered, at=now_ms)
    if not unnumbered:
        return replace(status, message="Slurm reports the GPU indices of each job")
    names = ", ".join(unnumbered[:5]) + (" …" if len(unnumbered) > 5 else "")
    return replace(
        status,
        message=f"no GPU indices on {len(unnumbered)} nodes ({names}): which job holds which GPU is unknown",
        hint="List the devices in gres.conf of these nodes (File=/dev/nvidia[0-7]) or let Slurm detect them "
        "(AutoDetect=nvml), and restart slurmd.",
    )


def _check_queue(response: SlurmResponse, inventory: SlurmInventory, now_ms: UnixMs) -> SourceStatus:
    status = status_of("queue", response, now_ms)
    if response.document is None:
        return status
    parsed = parse_jobs(response.document, inventory, now_ms)
    active = [workload for workload in parsed.workloads if workload.state.is_active]
    holders = {allocation.workload for allocation in parsed.allocations}
    dropped = f"; dropped: {dict(parsed.dropped)}" if parsed.dropped else ""
    return replace(status, message=f"{len(active)} active jobs, {len(holders)} of them on known GPUs{dropped}")


def _check_accounting(response: SlurmResponse, queue: Mapping[str, object], now_ms: UnixMs) -> SourceStatus:
    status = status_of("accounting", response, now_ms)
    if response.document is None:
        return status
    if _counts_gpus(queue):
        return replace(status, message=f"{len(as_list(response.document.get('jobs')))} jobs in the last hour")
    return replace(
        status,
        message="accounting does not record GPUs: the GPU count of jobs that ended between polls is unknown",
        hint="Set AccountingStorageTRES=gres/gpu in slurm.conf.",
    )


def _counts_gpus(queue: Mapping[str, object]) -> bool:
    """Whether jobs that hold GPUs also have them in their TRES."""
    for job in map(as_object, as_list(queue.get("jobs"))):
        has_gpus = any("gpu" in (read_text(detail) or "") for detail in as_list(job.get("gres_detail")))
        accounted = read_text(job.get("tres_alloc_str"))
        if has_gpus and accounted and "gres/gpu" not in accounted:
            return False
    return True
