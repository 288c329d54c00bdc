"""For ``clusterscape doctor``: asks every part of Slurm once and says what is wrong, or what was found where all is well."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from clusterscape.collect.slurm.answers import NAME, Answer, ask, status_of
from clusterscape.collect.slurm.faults import version_of
from clusterscape.collect.slurm.parse_jobs import parse_jobs
from clusterscape.collect.slurm.parse_nodes import Inventory, parse_nodes
from clusterscape.collect.slurm.source import SlurmSource
from clusterscape.collect.slurm.values import as_list, as_object, read_text
from clusterscape.model import SourceStatus, UnixMs

HOUR_S = 3600


async def check_source(source: SlurmSource, now_ms: UnixMs, *, has_history: bool) -> list[SourceStatus]:
    """One status for each part: nodes, GPU indices, partitions, queue and, where wanted, accounting."""
    now_s = now_ms // 1000
    nodes, partitions, jobs = await asyncio.gather(
        ask(source.fetch_nodes()), ask(source.fetch_partitions()), ask(source.fetch_jobs())
    )
    inventory = parse_nodes(nodes.document) if nodes.document is not None else Inventory()
    statuses = [
        _check_nodes(nodes, inventory, source, now_ms),
        status_of("partitions", partitions, now_ms),
        _check_queue(jobs, inventory, now_ms),
    ]
    if inventory.units:
        statuses.append(_check_indices(inventory, now_ms))
    if has_history:
        accounting = await ask(source.fetch_history(now_s - HOUR_S, now_s))
        statuses.append(_check_accounting(accounting, jobs.document or {}, now_ms))
    return statuses


def _check_nodes(answer: Answer, inventory: Inventory, source: SlurmSource, now_ms: UnixMs) -> SourceStatus:
    status = status_of("nodes", answer, now_ms)
    if answer.document is None:
        return status
    with_gpus = sum(node.gpu_count > 0 for node in inventory.nodes)
    if not with_gpus:
        return replace(
            status,
            is_ok=False,
            message=f"none of {len(inventory.nodes)} nodes has GPUs as far as Slurm knows",
            hint="Set GresTypes=gpu and Gres=gpu:TYPE:COUNT of the nodes in slurm.conf, and list the devices in gres.conf.",
        )
    release = version_of(answer.document) or "of unknown version"
    found = f"{source.describe()}, Slurm {release}: {len(inventory.nodes)} nodes, {with_gpus} with GPUs"
    return replace(status, message=f"{found} ({len(inventory.units)} in all)")


def _check_indices(inventory: Inventory, now_ms: UnixMs) -> SourceStatus:
    """Whether Slurm numbers the GPUs: only then is it known which GPU a job holds."""
    unnumbered = inventory.nodes_without_index
    status = SourceStatus(source=f"{NAME} GPU indices", kind=NAME, is_ok=not unnumbered, at=now_ms)
    if not unnumbered:
        return replace(status, message="Slurm names the GPUs of each job by index")
    names = ", ".join(unnumbered[:5]) + (" …" if len(unnumbered) > 5 else "")
    return replace(
        status,
        message=f"Slurm only counts the GPUs of {len(unnumbered)} nodes ({names}): which job holds which GPU is not known",
        hint="Name the devices in gres.conf of these nodes (File=/dev/nvidia[0-7]) or let Slurm find them (AutoDetect=nvml), "
        "and restart slurmd.",
    )


def _check_queue(answer: Answer, inventory: Inventory, now_ms: UnixMs) -> SourceStatus:
    status = status_of("queue", answer, now_ms)
    if answer.document is None:
        return status
    parsed = parse_jobs(answer.document, inventory, now_ms)
    active = [workload for workload in parsed.workloads if workload.state.is_active]
    holders = {allocation.workload for allocation in parsed.allocations}
    lost = f"; not understood: {dict(parsed.dropped)}" if parsed.dropped else ""
    return replace(status, message=f"{len(active)} active jobs, {len(holders)} of them on known GPUs{lost}")


def _check_accounting(answer: Answer, queue: Mapping[str, object], now_ms: UnixMs) -> SourceStatus:
    status = status_of("accounting", answer, now_ms)
    if answer.document is None:
        return status
    if _counts_gpus(queue):
        return replace(status, message=f"{len(as_list(answer.document.get('jobs')))} jobs in the last hour")
    return replace(
        status,
        message="accounting does not record GPUs: of jobs that ended unseen it is not known how many they had",
        hint="Set AccountingStorageTRES=gres/gpu in slurm.conf.",
    )


def _counts_gpus(queue: Mapping[str, object]) -> bool:
    """Whether jobs that hold GPUs have them in their accounted resources as well."""
    for job in map(as_object, as_list(queue.get("jobs"))):
        has_gpus = any("gpu" in (read_text(detail) or "") for detail in as_list(job.get("gres_detail")))
        accounted = read_text(job.get("tres_alloc_str"))
        if has_gpus and accounted and "gres/gpu" not in accounted:
            return False
    return True
