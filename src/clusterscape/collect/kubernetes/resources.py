"""Which kinds of objects are read, from which groups and versions; and which of them a server has."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from clusterscape.collect.kubernetes.client import KubernetesApiError, KubernetesClient
from clusterscape.collect.kubernetes.parse_devices import parse_claim, parse_slice
from clusterscape.collect.kubernetes.parse_nodes import parse_node
from clusterscape.collect.kubernetes.parse_owners import parse_owner
from clusterscape.collect.kubernetes.parse_pods import parse_pod
from clusterscape.collect.kubernetes.parse_queues import (
    parse_cluster_queue,
    parse_flavor,
    parse_kueue_workload,
    parse_local_queue,
    parse_pod_group,
    parse_volcano_queue,
)
from clusterscape.collect.kubernetes.values import Json, iter_objects, read_text
from clusterscape.settings import KubernetesSettings

Parse = Callable[[Json, KubernetesSettings], object | None]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind. ``part`` is what it is reported under; ``versions`` best first; group "" is the core's."""

    key: str
    part: str
    group: str
    versions: tuple[str, ...]
    plural: str
    parse: Parse
    is_needed: bool = False

    def path(self, version: str) -> str:
        """Where all of them are, over all namespaces."""
        return f"/api/{version}/{self.plural}" if not self.group else f"/apis/{self.group}/{version}/{self.plural}"


def _owner(kind: str, group: str, versions: tuple[str, ...], plural: str) -> Resource:
    return Resource(f"owner {plural}.{group}", "owners", group, versions, plural, partial(parse_owner, kind=kind))


_KUEUE = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"))
_DRA = ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"))
_VOLCANO = ("scheduling.volcano.sh", ("v1beta1",))

RESOURCES: tuple[Resource, ...] = (
    Resource("nodes", "nodes", "", ("v1",), "nodes", parse_node, is_needed=True),
    Resource("pods", "pods", "", ("v1",), "pods", parse_pod, is_needed=True),
    Resource("claims", "claims", *_DRA, "resourceclaims", parse_claim),
    Resource("slices", "claims", *_DRA, "resourceslices", parse_slice),
    Resource("cluster queues", "kueue", *_KUEUE, "clusterqueues", parse_cluster_queue),
    Resource("local queues", "kueue", *_KUEUE, "localqueues", lambda item, _: parse_local_queue(item)),
    Resource("flavors", "kueue", *_KUEUE, "resourceflavors", lambda item, _: parse_flavor(item)),
    Resource("kueue workloads", "kueue", *_KUEUE, "workloads", parse_kueue_workload),
    Resource("volcano queues", "volcano", *_VOLCANO, "queues", parse_volcano_queue),
    Resource("pod groups", "volcano", *_VOLCANO, "podgroups", parse_pod_group),
    _owner("Job", "batch", ("v1",), "jobs"),
    _owner("ReplicaSet", "apps", ("v1",), "replicasets"),
    _owner("StatefulSet", "apps", ("v1",), "statefulsets"),
    _owner("Deployment", "apps", ("v1",), "deployments"),
    _owner("JobSet", "jobset.x-k8s.io", ("v1alpha2",), "jobsets"),
    _owner("LeaderWorkerSet", "leaderworkerset.x-k8s.io", ("v1",), "leaderworkersets"),
    _owner("PyTorchJob", "kubeflow.org", ("v1",), "pytorchjobs"),
    _owner("TFJob", "kubeflow.org", ("v1",), "tfjobs"),
    _owner("MPIJob", "kubeflow.org", ("v2beta1", "v1"), "mpijobs"),
    _owner("TrainJob", "trainer.kubeflow.org", ("v1alpha1",), "trainjobs"),
    _owner("Notebook", "kubeflow.org", ("v1",), "notebooks"),
    _owner("RayCluster", "ray.io", ("v1", "v1alpha1"), "rayclusters"),
    _owner("RayJob", "ray.io", ("v1", "v1alpha1"), "rayjobs"),
    _owner("Job", "batch.volcano.sh", ("v1alpha1",), "jobs"),
)
"""Owners that are not listed still give their name to a workload: pods name who made them."""


async def find_paths(client: KubernetesClient) -> dict[str, str]:
    """The path of every kind that the server has, by key. A kind whose group is not installed is simply not there."""
    response = await client.get("/apis")
    served: dict[str, set[str]] = {"": {"v1"}}
    for group in iter_objects(response.get("groups")):
        versions = {read_text(entry.get("version")) or "" for entry in iter_objects(group.get("versions"))}
        served[read_text(group.get("name")) or ""] = versions
    group_versions = sorted(
        {(r.group, version) for r in RESOURCES for version in r.versions if version in served.get(r.group, ())}
    )
    plural_sets = await asyncio.gather(*(_read_plurals(client, group, version) for group, version in group_versions))
    plurals: Mapping[tuple[str, str], set[str]] = dict(zip(group_versions, plural_sets, strict=True))
    paths: dict[str, str] = {}
    for resource in RESOURCES:
        for version in resource.versions:
            if resource.is_needed or resource.plural in plurals.get((resource.group, version), ()):
                paths[resource.key] = resource.path(version)
                break
    return paths


async def _read_plurals(client: KubernetesClient, group: str, version: str) -> set[str]:
    """Of one version of a group; an aggregated API whose own server is away has none now."""
    try:
        response = await client.get(f"/apis/{group}/{version}" if group else f"/api/{version}")
    except KubernetesApiError as error:
        if error.status is None or error.status < 500:
            raise
        return set()
    return {read_text(entry.get("name")) or "" for entry in iter_objects(response.get("resources"))}
