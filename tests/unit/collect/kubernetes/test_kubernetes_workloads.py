from typing import Any

import pytest
from clusters.kubernetes_objects import (
    END,
    LATER,
    RUNNING,
    cluster_queue,
    condition,
    deployment,
    ended,
    flavor,
    job,
    kueue_workload,
    local_queue,
    node,
    owned_by,
    pod,
    pod_group,
    pytorch_job,
    replica_set,
    volcano_queue,
    waiting,
)
from clusters.kubernetes_snapshots import read, stored

from clusterscape.collect.kubernetes.values import read_time
from clusterscape.model import Workload, WorkloadKind, WorkloadState

Json = dict[str, Any]


def only(*objects: Json) -> Workload:
    (workload,) = read(node("gpu-1"), *objects)[1].workloads
    return workload


def test_pods_of_a_job_are_one_workload_when_they_run() -> None:
    owner = stored(job("train", pods=2, labels={"user": "ada", "experiment": "mixtral"}, activeDeadlineSeconds=3600))
    pods = [stored(pod(f"train-{n}", gpus=8, owner=owner, nodeName="gpu-1") | {"status": RUNNING}) for n in range(2)]
    workload = only(owner, *pods)
    assert workload.id == f"kubernetes:team-a.train.{owner['metadata']['uid'][:8]}"
    assert (workload.state, workload.kind, workload.name) == (WorkloadState.RUNNING, WorkloadKind.JOB, "train")
    assert (workload.user, workload.project, workload.experiment) == ("ada", "team-a", "mixtral")
    assert (workload.partition, workload.resource_type, workload.gpus_requested) == ("k8s/default", "H100-80G-16", 16)
    assert (workload.time_limit_s, workload.started_at, workload.nodes) == (3600, read_time(LATER), ("gpu-1",))
    assert (workload.tags["owner"], workload.tags["pods"]) == ("Job", "2")


def test_gang_reports_placed_pods_when_some_wait() -> None:
    owner = stored(pytorch_job("llm", workers=3, annotations={"owner": "grace"}))
    first = stored(pod("llm-master-0", gpus=8, owner=owner, nodeName="gpu-1") | {"status": RUNNING})
    second = stored(pod("llm-worker-0", gpus=8, owner=owner) | {"status": waiting("0/1 nodes are available.")})
    workload = only(owner, first, second)
    assert (workload.state, workload.gpus_requested, workload.user) == (WorkloadState.RUNNING, 32, "grace")
    assert workload.tags["pods"] == "1 of 4"


def test_owners_are_followed_to_the_top_when_they_are_stacked() -> None:
    service = stored(deployment("chat", replicas=2))
    middle = stored(replica_set(service))
    running = stored(pod("chat-1", owner=middle, nodeName="gpu-1") | {"status": RUNNING})
    workload = only(service, middle, running)
    assert (workload.name, workload.tags["owner"], workload.gpus_requested) == ("chat", "Deployment", 1)


def test_an_owner_gives_its_name_when_its_kind_is_not_read() -> None:
    ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "serve", "uid": "77777777-aa"}}
    workload = only(stored(pod("serve-head", owner=ray, nodeName="gpu-1") | {"status": RUNNING}))
    assert (workload.id, workload.tags["owner"]) == ("kubernetes:team-a.serve.77777777", "RayCluster")


def test_each_run_is_a_workload_when_a_cron_job_makes_it() -> None:
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "uid": "c"}}
    nightly = job("nightly-2891")
    nightly["metadata"]["ownerReferences"] = owned_by(cron)
    assert only(stored(nightly)).name == "nightly-2891"


def test_pods_are_one_workload_when_a_label_groups_them() -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "trio", "kueue.x-k8s.io/queue-name": "main"}
    workload = only(*(stored(pod(f"p-{n}", labels=labels, nodeName="gpu-1") | {"status": RUNNING}) for n in range(3)))
    assert (workload.id, workload.gpus_requested, workload.partition) == ("kubernetes:team-a.trio", 3, "k8s/main")


def test_a_notebook_is_a_session_when_jupyterhub_labels_it() -> None:
    labels = {"hub.jupyter.org/username": "ada", "component": "singleuser-server"}
    workload = only(stored(pod("jupyter-ada", labels=labels, nodeName="gpu-1") | {"status": RUNNING}))
    assert (workload.kind, workload.user) == (WorkloadKind.SESSION, "ada")


def test_workloads_are_empty_when_pods_have_no_gpus() -> None:
    assert read(node("gpu-1"), stored(pod("web", gpus=0)))[1].workloads == ()


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (
            "0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint {dedicated: x}. "
            "preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.",
            "Insufficient nvidia.com/gpu",
        ),
        ("0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu.", "Insufficient nvidia.com/gpu"),
        ("0/3 nodes are available: 3 Insufficient memory.", "Insufficient memory"),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: present}.", "UntoleratedTaint"),
        ("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", "NodeAffinity"),
        ("0/3 nodes are available: 3 node(s) were unschedulable.", "NodesCordoned"),
        ("0/3 nodes are available: 3 cannot allocate all claims.", "ClaimsNotAllocated"),
        ("no nodes available to schedule pods", "Unschedulable"),
    ],
)
def test_reason_has_word_and_sentence_when_the_scheduler_finds_no_node(message: str, word: str) -> None:
    workload = only(stored(pod("p") | {"status": waiting(message)}))
    assert (workload.state, workload.pending_reason) == (WorkloadState.WAITING, word)
    assert workload.tags["reason_detail"] == message[:300]


def test_quota_is_the_reason_when_kueue_holds_a_job_back() -> None:
    owner = stored(job("queued", labels={"kueue.x-k8s.io/queue-name": "main"}, suspend=True))
    words = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"
    pending = condition("QuotaReserved", "False", "Pending", words)
    workload = only(
        owner,
        stored(kueue_workload(owner, queue="main", conditions=[pending])),
        stored(local_queue("main", "team-a", "llm")),
        stored(cluster_queue("llm", 16, "h100", used=16, pending=1)),
        stored(flavor("h100", {})),
    )
    assert (workload.state, workload.pending_reason) == (WorkloadState.WAITING, "KueueQuota")
    assert workload.tags["reason_detail"] == words
    assert (workload.partition, workload.tags["local_queue"]) == ("k8s/llm", "main")
    assert (workload.priority, workload.qos, workload.gpus_requested) == (100, "research", 8)
    assert workload.resource_type == "H100-80G-8"


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        ([], "KueueQueued"),
        ([condition("QuotaReserved", "False", "Inadmissible", "no queue")], "KueueInadmissible"),
        ([condition("QuotaReserved"), condition("Admitted", "False", "NoChecks", "1 check")], "KueueAdmissionCheck"),
        (
            [
                condition("QuotaReserved", "False", "Pending", "x"),
                condition("Evicted", reason="Preempted", message="by b"),
            ],
            "KueuePreempted",
        ),
        ([condition("QuotaReserved"), condition("Admitted")], "JobSuspended"),
    ],
)
def test_pending_reason_follows_the_conditions_when_kueue_queues_a_workload(conditions: list[Json], word: str) -> None:
    owner = stored(job("queued", suspend=True))
    workload = only(owner, stored(kueue_workload(owner, queue="main", conditions=conditions)))
    assert workload.pending_reason == word


def test_wait_reason_comes_from_kueue_when_the_owners_kind_is_not_read() -> None:
    owner = {
        "apiVersion": "jobs.example.org/v1",
        "kind": "Sweep",
        "metadata": {"name": "s", "namespace": "b", "uid": "5-5"},
    }
    workload = only(stored(kueue_workload(owner, queue="main", gpus=4, pods=3)))
    assert (workload.id, workload.state, workload.gpus_requested) == ("kubernetes:b.s.5-5", WorkloadState.WAITING, 12)


def test_reason_comes_from_the_group_when_volcano_holds_it_back() -> None:
    owner = stored(job("gang", pods=4))
    blocked = condition("Unschedulable", reason="NotEnoughResources", message="4/0 tasks in gang unschedulable")
    pods = [stored(pod(f"gang-{n}", gpus=8, owner=owner)) for n in range(4)]
    group = stored(pod_group(owner, queue="batch", members=4, conditions=[blocked]))
    workload = only(owner, *pods, group, stored(volcano_queue("batch", 32)))
    assert (workload.partition, workload.pending_reason) == ("k8s/batch", "NotEnoughResources")


def test_a_bound_pod_holds_its_gpus_when_its_image_cannot_be_pulled() -> None:
    status = RUNNING | {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "main", "restartCount": 2, "state": {"waiting": {"reason": "ImagePullBackOff"}}, "ready": False}
        ],
    }
    workload = only(stored(pod("p", nodeName="gpu-1") | {"status": status}))
    assert (workload.state, workload.tags["pod_trouble"], workload.restarts) == (
        WorkloadState.RUNNING,
        "ImagePullBackOff",
        2,
    )


@pytest.mark.parametrize(
    ("status", "state", "reason", "code", "signal"),
    [
        (ended(0), WorkloadState.COMPLETED, None, 0, None),
        (ended(1), WorkloadState.FAILED, "Error", 1, None),
        (ended(137, "OOMKilled"), WorkloadState.OUT_OF_MEMORY, "OOMKilled", None, 9),
        (ended(143, reason="Error") | {"reason": "Evicted"}, WorkloadState.FAILED, "Evicted", None, 15),
        (ended(1) | {"reason": "DeadlineExceeded"}, WorkloadState.TIMEOUT, "DeadlineExceeded", 1, None),
        (
            ended(137) | {"conditions": [condition("DisruptionTarget", reason="PreemptionByScheduler")]},
            WorkloadState.PREEMPTED,
            "PreemptionByScheduler",
            None,
            9,
        ),
        (ended(137) | {"reason": "NodeLost"}, WorkloadState.NODE_FAILED, "NodeLost", None, 9),
    ],
)
def test_end_of_a_pod_is_reported_when_it_has_no_owner(
    status: Json, state: WorkloadState, reason: str | None, code: int | None, signal: int | None
) -> None:
    workload = only(stored(pod("p", nodeName="gpu-1") | {"status": status}))
    assert (workload.state, workload.tags.get("exit_reason")) == (state, reason)
    assert (workload.exit_code, workload.exit_signal) == (code, signal)
    assert workload.ended_at == read_time(END)


def test_exit_reason_comes_from_the_pods_when_the_job_has_failed() -> None:
    failed = condition(
        "Failed", reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit", at=END
    )
    owner = stored(job("train") | {"status": {"conditions": [failed], "failed": 2}})
    pods = [
        stored(pod(f"train-{n}", gpus=8, owner=owner, nodeName="gpu-1") | {"status": ended(137, "OOMKilled")})
        for n in (0, 1)
    ]
    workload = only(owner, *pods)
    assert (workload.state, workload.gpus_requested) == (WorkloadState.OUT_OF_MEMORY, 8)
    assert (workload.tags["exit_reason"], workload.exit_signal) == ("OOMKilled", 9)


def test_a_job_waits_again_when_its_pod_failed_and_it_will_retry() -> None:
    owner = stored(job("train"))
    workload = only(owner, stored(pod("train-0", gpus=8, owner=owner, nodeName="gpu-1") | {"status": ended(1)}))
    assert (workload.state, workload.started_at) == (WorkloadState.WAITING, None)


def test_a_job_has_ended_when_its_pods_are_cleaned_up() -> None:
    done = {"conditions": [condition("Complete", at=END)], "completionTime": END, "succeeded": 1}
    workload = only(stored(job("train") | {"status": done}))
    assert (workload.state, workload.ended_at, workload.exit_code) == (WorkloadState.COMPLETED, read_time(END), 0)
