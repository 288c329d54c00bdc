"""Checks for ``clusterscape doctor``: lists every kind once and reports what is wrong, or a summary."""

import asyncio
from collections.abc import Mapping

from clusterscape.collect.kubernetes.client import KubernetesApiError, KubernetesClient
from clusterscape.collect.kubernetes.inventory import Inventory
from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.reflector import Reflector, watch_resource
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import Snapshot, take_snapshot
from clusterscape.collect.kubernetes.statuses import describe_queues, find_error, skew_status, source_status
from clusterscape.collect.kubernetes.values import read_text
from clusterscape.collect.kubernetes.workloads import Queue
from clusterscape.errors import SourceError
from clusterscape.model import SourceStatus, UnixMs
from clusterscape.settings import KubernetesSettings


async def check_cluster(
    client: KubernetesClient, paths: Mapping[str, str], settings: KubernetesSettings, now_ms: UnixMs
) -> list[SourceStatus]:
    """One status for each part."""
    watches: dict[str, Reflector[object]] = {}
    for resource in RESOURCES:
        if resource.key in paths:
            watches[resource.key] = watch_resource(client, resource, paths[resource.key], settings)
    try:
        async with asyncio.timeout(settings.timeout_s):
            await asyncio.gather(*(watch.settle() for watch in watches.values()))
    except TimeoutError:
        pass
    finally:
        await asyncio.gather(*(watch.stop() for watch in watches.values()))
    snapshot = take_snapshot(((key, watch.facts) for key, watch in watches.items()), now_ms=now_ms)
    inventory, queue = read_snapshot(snapshot, settings, now_ms)
    errors = {
        part: find_error((watches[r.key] for r in RESOURCES if r.part == part and r.key in watches), settings)
        for part in dict.fromkeys(resource.part for resource in RESOURCES)
    }
    statuses = [
        _check_nodes(errors["nodes"], inventory, await _read_version(client), client.url, now_ms),
        _check_pods(errors["pods"], queue, now_ms),
        source_status("owners", now_ms, errors["owners"], message=f"{len(snapshot.owners)} that want GPUs"),
        _check_queues("kueue", errors["kueue"], snapshot, watches.keys() & {"cluster queues"}, now_ms),
        _check_queues("volcano", errors["volcano"], snapshot, watches.keys() & {"volcano queues"}, now_ms),
        _check_claims(errors["claims"], snapshot, watches.keys() & {"claims"}, now_ms),
    ]
    if errors["pods"] is None and errors["nodes"] is None:
        statuses.append(_check_places(queue, now_ms))
    if client.skew_ms is not None:
        statuses.append(skew_status(client.skew_ms, now_ms))
    return statuses


async def _read_version(client: KubernetesClient) -> str:
    try:
        return read_text((await client.get("/version")).get("gitVersion")) or "of unknown version"
    except KubernetesApiError:
        return "of unknown version"


def _check_nodes(error: SourceError | None, inventory: Inventory, version: str, url: str, at: UnixMs) -> SourceStatus:
    with_gpus = sum(node.gpu_count > 0 or bool(node.features) for node in inventory.nodes)
    if error is None and not with_gpus:
        error = SourceError(
            f"none of {len(inventory.nodes)} nodes offers GPUs",
            hint="Install the device plugin or the GPU operator, or name the resource in collect.kubernetes.gpu_resources.",
        )
    summary = f"{url}, Kubernetes {version}: {len(inventory.nodes)} nodes, {with_gpus} with GPUs ({len(inventory.units)} in all)"
    return source_status("nodes", at, error, message=summary)


def _check_pods(error: SourceError | None, queue: Queue, at: UnixMs) -> SourceStatus:
    active = [workload for workload in queue.workloads if workload.state.is_active]
    unnamed = sum(workload.user is None for workload in active)
    without_user = f", {unnamed} of them without a user (collect.kubernetes.user_labels)" if unnamed else ""
    return source_status("pods", at, error, message=f"{len(active)} active workloads{without_user}")


def _check_queues(
    part: str, error: SourceError | None, snapshot: Snapshot, installed: object, at: UnixMs
) -> SourceStatus:
    if not installed:
        return source_status(part, at, None, message="not installed, which is fine")
    queues = snapshot.cluster_queues if part == "kueue" else snapshot.volcano_queues
    return source_status(part, at, error, message=describe_queues(queues) or "no queue with GPUs")


def _check_claims(error: SourceError | None, snapshot: Snapshot, installed: object, at: UnixMs) -> SourceStatus:
    if not installed:
        return source_status(
            "claims", at, None, message="this server has no dynamic resource allocation, which is fine"
        )
    allocated = sum(bool(claim.devices) for claim in snapshot.claims.values())
    return source_status("claims", at, error, message=f"{len(snapshot.devices)} devices, {allocated} claims hold some")


def _check_places(queue: Queue, at: UnixMs) -> SourceStatus:
    """Whether it is known which GPU a pod holds."""
    if not queue.unplaced_pods:
        return source_status("GPU indices", at, None, message="the GPUs of every pod are known")
    return source_status(
        "GPU indices",
        at,
        None,
        message=f"the API server does not report which GPUs {queue.unplaced_pods} pods hold: exporters that label GPUs with "
        "pods do",
        hint="Run dcgm-exporter with DCGM_EXPORTER_KUBERNETES=true and read it with collect.dcgm, or use DRA.",
    )
