"""Objects of a Kubernetes cluster with GPUs, as their controllers write them; made from the published API schema, not recorded.

tests/unit/collect/kubernetes/test_objects_follow_schemas.py holds those of Kubernetes itself to its OpenAPI document.
"""

from typing import Any

Json = dict[str, Any]

AT = "2026-11-15T08:00:00Z"
LATER = "2026-11-15T08:00:20Z"
END = "2026-11-15T09:30:00Z"
CONTAINER = {"name": "main", "image": "pytorch"}


def meta(name: str, namespace: str | None = None, **more: Any) -> Json:
    return {"name": name} | ({"namespace": namespace} if namespace else {}) | more


def owned_by(owner: Json) -> list[Json]:
    fields = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": fields["name"], "uid": fields["uid"]}
    return [reference | {"controller": True, "blockOwnerDeletion": True}]


def condition(
    kind: str, status: str = "True", reason: str | None = None, message: str | None = None, at: str = AT
) -> Json:
    fields = {"type": kind, "status": status, "lastTransitionTime": at}
    return fields | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def node(
    name: str,
    gpus: int = 8,
    product: str = "NVIDIA-H100-80GB-HBM3",
    *,
    labels: Json | None = None,
    resources: Json | None = None,
    ready: str = "True",
    cordoned: bool = False,
    taints: list[Json] | None = None,
) -> Json:
    entries = (
        {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus), "nvidia.com/gpu.memory": "81559"}
        if gpus
        else {}
    )
    capacity = {"cpu": "192", "memory": "2113458752Ki", "pods": "110"}
    capacity |= resources if resources is not None else ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    why = {"True": "KubeletReady", "Unknown": "NodeStatusUnknown"}.get(ready, "KubeletNotReady")
    words = {"True": "kubelet is posting ready status", "Unknown": "Kubelet stopped posting node status."}.get(
        ready, "PLEG is not healthy"
    )
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta(name, labels={"kubernetes.io/hostname": name} | entries | (labels or {})),
        "spec": ({"unschedulable": True} if cordoned else {}) | ({"taints": taints} if taints else {}),
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [condition("Ready", ready, why, words) | {"lastHeartbeatTime": AT}],
        },
    }


def pod_spec(gpus: int = 1, resource: str = "nvidia.com/gpu", **more: Any) -> Json:
    wanted = {resource: str(gpus)} if gpus else {}
    return {
        "containers": [CONTAINER | {"resources": {"limits": wanted, "requests": wanted}}],
        "restartPolicy": "Never",
    } | more


def pod(
    name: str,
    namespace: str = "team-a",
    *,
    gpus: int = 1,
    owner: Json | None = None,
    labels: Json | None = None,
    annotations: Json | None = None,
    **spec: Any,
) -> Json:
    fields = meta(name, namespace, labels=labels or {})
    fields |= {"ownerReferences": owned_by(owner)} if owner else {}
    fields |= {"annotations": annotations} if annotations else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": fields, "spec": pod_spec(gpus, **spec)}


def container_status(state: Json, restarts: int = 0, **more: Any) -> Json:
    is_ready = "running" in state
    fields = {
        "name": "main",
        "image": "pytorch",
        "imageID": "",
        "ready": is_ready,
        "restartCount": restarts,
        "state": state,
    }
    return fields | more


RUNNING = {
    "phase": "Running",
    "startTime": LATER,
    "conditions": [condition("PodScheduled", at=LATER), condition("Ready", at=LATER)],
    "containerStatuses": [container_status({"running": {"startedAt": LATER}})],
}


def waiting(message: str, reason: str = "Unschedulable") -> Json:
    return {"phase": "Pending", "conditions": [condition("PodScheduled", "False", reason, message)]}


def ended(code: int, reason: str = "Error", *, phase: str | None = None, at: str = END, **more: Any) -> Json:
    over = {"exitCode": code, "reason": reason, "startedAt": LATER, "finishedAt": at}
    return {
        "phase": phase or ("Failed" if code else "Succeeded"),
        "startTime": LATER,
        "conditions": [condition("PodScheduled", at=LATER)],
        "containerStatuses": [container_status({"terminated": over})],
    } | more


def job(
    name: str, namespace: str = "team-a", *, gpus: int = 8, pods: int = 1, labels: Json | None = None, **spec: Any
) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta(name, namespace, labels=labels or {}),
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": pod_spec(gpus)}} | spec,
    }


def deployment(name: str, namespace: str = "team-a", *, gpus: int = 1, replicas: int = 1) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(gpus) | {"restartPolicy": "Always"}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, namespace), "spec": spec}


def replica_set(owner: Json, suffix: str = "6f9d") -> Json:
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": owner["spec"]}
    fields = owner["metadata"]
    name = f"{fields['name']}-{suffix}"
    return replica_set | {
        "metadata": meta(name, fields["namespace"], ownerReferences=owned_by(owner), labels={"app": fields["name"]})
    }


def pytorch_job(name: str, namespace: str = "team-a", *, workers: int = 3, gpus: int = 8, **fields: Any) -> Json:
    roles = {
        role: {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": pod_spec(gpus)}}
        for role, count in (("Master", 1), ("Worker", workers))
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": meta(name, namespace, **fields),
        "spec": {"pytorchReplicaSpecs": roles},
    }


def cluster_queue(name: str, quota: int, flavor: str, *, used: int = 0, pending: int = 0) -> Json:
    resource = {"name": "nvidia.com/gpu", "nominalQuota": quota}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": flavor, "resources": [resource]}]}
    usage = [{"name": flavor, "resources": [{"name": "nvidia.com/gpu", "total": str(used), "borrowed": "0"}]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": meta(name),
        "spec": {"namespaceSelector": {}, "resourceGroups": [group], "stopPolicy": "None"},
        "status": {
            "flavorsUsage": usage,
            "pendingWorkloads": pending,
            "conditions": [condition("Active", reason="Ready")],
        },
    }


def local_queue(name: str, namespace: str, cluster: str) -> Json:
    spec = {"clusterQueue": cluster}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": meta(name, namespace),
        "spec": spec,
    }


def flavor(name: str, labels: Json) -> Json:
    spec = {"nodeLabels": labels}
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": meta(name), "spec": spec}


def kueue_workload(
    owner: Json, *, queue: str, gpus: int = 8, pods: int = 1, conditions: list[Json] | None = None, **status: Any
) -> Json:
    fields = owner["metadata"]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": meta(f"job-{fields['name']}", fields["namespace"], ownerReferences=owned_by(owner)),
        "spec": {
            "queueName": queue,
            "priority": 100,
            "priorityClassName": "research",
            "podSets": [{"name": "main", "count": pods, "template": {"spec": pod_spec(gpus)}}],
        },
        "status": {"conditions": conditions or []} | status,
    }


def volcano_queue(name: str, limit: int) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": meta(name),
        "spec": {"weight": 1, "capability": {"nvidia.com/gpu": limit}},
        "status": {"state": "Open", "allocated": {"nvidia.com/gpu": "8"}, "pending": 1},
    }


def pod_group(owner: Json, *, queue: str, members: int, conditions: list[Json] | None = None) -> Json:
    fields = owner["metadata"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta(f"{fields['name']}-group", fields["namespace"], ownerReferences=owned_by(owner)),
        "spec": {"queue": queue, "minMember": members},
        "status": {"phase": "Pending" if conditions else "Running", "conditions": conditions or []},
    }


def resource_slice(node_name: str, count: int, version: str = "v1") -> Json:
    devices = []
    for index in range(count):
        fields: Json = {
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": f"GPU-00000000-0000-0000-0000-{index:012d}"},
                "index": {"int": index},
                "productName": {"string": "NVIDIA H100 80GB HBM3"},
            },
            "capacity": {"memory": {"value": "81559Mi"}},
        }
        devices.append({"name": f"gpu-{index}"} | ({"basic": fields} if version == "v1beta1" else fields))
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": node_name, "pool": pool, "devices": devices}
    name = f"{node_name}-gpu.nvidia.com-x"
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice", "metadata": meta(name), "spec": spec}


def resource_claim(name: str, namespace: str = "team-a", *, count: int = 2, version: str = "v1") -> Json:
    exact: Json = {"deviceClassName": "gpu.nvidia.com", "count": count, "allocationMode": "ExactCount"}
    request = {"name": "gpus"} | (exact if version == "v1beta1" else {"exactly": exact})
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": meta(name, namespace),
        "spec": {"devices": {"requests": [request]}},
    }


def allocated(node_name: str, devices: list[str], holder: Json) -> Json:
    results = [{"request": "gpus", "driver": "gpu.nvidia.com", "pool": node_name, "device": name} for name in devices]
    fields = holder["metadata"]
    return {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": fields["name"], "uid": fields["uid"]}],
    }


def definition(group: str, version: str, plural: str, kind: str, *, namespaced: bool = True) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": meta(f"{plural}.{group}"),
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


KUEUE = [
    definition("kueue.x-k8s.io", "v1beta1", "clusterqueues", "ClusterQueue", namespaced=False),
    definition("kueue.x-k8s.io", "v1beta1", "resourceflavors", "ResourceFlavor", namespaced=False),
    definition("kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue"),
    definition("kueue.x-k8s.io", "v1beta1", "workloads", "Workload"),
]
VOLCANO = [
    definition("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False),
    definition("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
]
KUBEFLOW = [definition("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")]
