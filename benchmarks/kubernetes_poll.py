"""A Kubernetes of 10,000 GPUs: the first read of all pods and nodes, the memory they keep, and one poll after that.

The peer keeps the objects as they came, parsed JSON, as a client library's cache does. Budgets: a poll every 15 s may take 2 % of
one core, 300 ms; the first read 5 s; 3 kB for each pod.
"""

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import orjson

from benchmarks.report import Report
from clusterscape.collect.kubernetes.reading import read_snapshot
from clusterscape.collect.kubernetes.resources import RESOURCES
from clusterscape.collect.kubernetes.snapshot import take_snapshot
from clusterscape.model import UnixMs
from clusterscape.settings import KubernetesSettings

Json = dict[str, Any]

SETTINGS = KubernetesSettings(mode="url", url="http://127.0.0.1:1")
NOW = UnixMs(1_794_733_200_000)
GPUS_PER_POD = 2
PODS_PER_JOB = 4
AT = "2026-11-15T08:00:00Z"


def make_cluster(gpus: int) -> dict[str, list[bytes]]:
    """Nodes of 8 GPUs, all full: pods of 2 GPUs, 4 to a Job; each as the server sends it, by kind."""
    nodes = [orjson.dumps(_node(index)) for index in range(gpus // 8)]
    pods = [orjson.dumps(_pod(index)) for index in range(gpus // GPUS_PER_POD)]
    jobs = [orjson.dumps(_job(index)) for index in range(gpus // GPUS_PER_POD // PODS_PER_JOB)]
    return {"nodes": nodes, "pods": pods, "owner jobs.batch": jobs}


def _node(index: int) -> Json:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81559",
    }
    labels |= {f"feature.node.kubernetes.io/cpu-cpuid.F{number}": "true" for number in range(60)}
    images = [
        {"names": [f"registry.example.org/image-{number}@sha256:{'0' * 64}"], "sizeBytes": number}
        for number in range(50)
    ]
    return {
        "metadata": {"name": f"gpu-{index:04d}", "uid": f"{index:08x}-node", "labels": labels, "creationTimestamp": AT},
        "spec": {},
        "status": {
            "capacity": {"cpu": "192", "memory": "2113458752Ki", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": AT, "reason": "KubeletReady"}],
            "images": images,
        },
    }


def _pod(index: int) -> Json:
    job = index // PODS_PER_JOB
    wanted = {"nvidia.com/gpu": str(GPUS_PER_POD), "cpu": "16", "memory": "128Gi"}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"train-{job}",
        "uid": f"{job:08x}-job",
        "controller": True,
    }
    fields: Json = {f"f:field-{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(60)}
    return {
        "metadata": {
            "name": f"train-{job}-{index}",
            "namespace": f"team-{job % 40}",
            "uid": f"{index:08x}-pod",
            "creationTimestamp": AT,
            "labels": {"user": f"user-{job % 300}", "batch.kubernetes.io/job-name": f"train-{job}"},
            "ownerReferences": [owner],
            "managedFields": [{"manager": "kube-controller-manager", "fieldsV1": fields}],
        },
        "spec": {
            "nodeName": f"gpu-{index * GPUS_PER_POD // 8:04d}",
            "priority": 0,
            "schedulerName": "default-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "pytorch",
                    "resources": {"limits": wanted, "requests": wanted},
                    "env": [
                        {"name": f"VARIABLE_{number}", "value": "some text of usual length"} for number in range(30)
                    ],
                }
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": AT,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": AT}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": "main", "restartCount": 0, "ready": True, "state": {"running": {"startedAt": AT}}}
            ],
        },
    }


def _job(index: int) -> Json:
    metadata = {
        "name": f"train-{index}",
        "namespace": f"team-{index % 40}",
        "uid": f"{index:08x}-job",
        "creationTimestamp": AT,
    }
    return {
        "metadata": metadata,
        "spec": {"parallelism": PODS_PER_JOB, "completions": PODS_PER_JOB, "template": {"spec": {}}},
    }


def read_all(cluster: dict[str, list[bytes]]) -> dict[str, dict[str, object]]:
    """As the watches hold it after their first list."""
    parse = {resource.key: resource.parse for resource in RESOURCES}
    held: dict[str, dict[str, object]] = {}
    for key, texts in cluster.items():
        facts = held.setdefault(key, {})
        for text in texts:
            item = orjson.loads(text)
            fact = parse[key](item, SETTINGS)
            if fact is not None:
                facts[item["metadata"]["uid"]] = fact
    return held


def keep_all(cluster: dict[str, list[bytes]]) -> dict[str, list[Json]]:
    """As a cache of objects holds it."""
    return {key: [orjson.loads(text) for text in texts] for key, texts in cluster.items()}


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def kept_bytes(work: Callable[[], object]) -> int:
    """Memory of the result in bytes."""
    tracemalloc.start()
    result = work()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return size


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cluster = make_cluster(options.gpus)
    pods = len(cluster["pods"])
    size = sum(map(len, cluster["pods"])) / pods / 1000
    held = read_all(cluster)

    def poll() -> object:
        return read_snapshot(take_snapshot(held.items(), now_ms=NOW), SETTINGS, NOW)

    inventory, queue = read_snapshot(take_snapshot(held.items(), now_ms=NOW), SETTINGS, NOW)
    assert len(inventory.units) == options.gpus // 8 * 8
    assert len(queue.workloads) == len(cluster["owner jobs.batch"])
    load = os.getloadavg()[0]
    report = Report(
        f"Kubernetes with {options.gpus:,} GPUs, {pods:,} pods of {size:.1f} kB (load {load:.0f} while measured)"
    )
    read_s = min(cpu_s(lambda: read_all(cluster)) for _ in range(3))
    keep_s = min(cpu_s(lambda: keep_all(cluster)) for _ in range(3))
    report.add("first read of everything", read_s, "s of CPU", keep_s, "JSON only", budget=5)
    ours, peers = kept_bytes(lambda: read_all(cluster)), kept_bytes(lambda: keep_all(cluster))
    report.add("kept in memory, per pod", ours / pods, "bytes", peers / pods, "objects as they came", budget=3000)
    report.add("one poll after that", min(cpu_s(poll) for _ in range(5)) * 1000, "ms of CPU", budget=300)
    report.publish(as_json=options.json)


if __name__ == "__main__":
    main()
