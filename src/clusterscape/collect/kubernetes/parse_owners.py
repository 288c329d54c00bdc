"""Reads what makes pods: Jobs, Deployments, PyTorchJobs, JobSets, vcjobs, RayClusters and their kin, by shape and not by kind."""

from collections.abc import Iterator

from clusterscape.collect.kubernetes.endings import read_owner_ending
from clusterscape.collect.kubernetes.facts import OwnerFacts
from clusterscape.collect.kubernetes.meta import read_meta
from clusterscape.collect.kubernetes.parse_pods import read_gpus
from clusterscape.collect.kubernetes.values import Json, as_object, dig, iter_objects, read_int, read_text, read_texts
from clusterscape.settings import KubernetesSettings

MAX_PODS = 100_000

Template = tuple[int, dict[str, object]]
"""How many pods, and the spec of each."""


def parse_owner(item: Json, settings: KubernetesSettings, *, kind: str) -> OwnerFacts:
    """Any of them; what a kind does not say stays unknown."""
    spec = as_object(item.get("spec"))
    policy = as_object(spec.get("runPolicy"))  # Kubeflow's
    templates = [(min(count, MAX_PODS), pod) for count, pod in _iter_templates(spec, kind) if count > 0]
    sized = tuple((count, sum(read_gpus(pod, settings.gpu_resources).values())) for count, pod in templates)
    pods = [pod for _, pod in templates]
    deadline_s = read_int(spec.get("activeDeadlineSeconds")) or read_int(policy.get("activeDeadlineSeconds"))
    return OwnerFacts(
        meta=read_meta(item, settings, kind=kind),
        is_suspended=spec.get("suspend") is True or policy.get("suspend") is True,
        ending=read_owner_ending(as_object(item.get("status"))),
        templates=sized,
        deadline_s=deadline_s,
        priority_class=next((name for pod in pods if (name := read_text(pod.get("priorityClassName")))), None),
        selector=next((read_texts(pod.get("nodeSelector")) for pod in pods), {}),
    )


def _iter_templates(spec: Json, kind: str) -> Iterator[Template]:
    """The pods that it wants, in every shape that is common."""
    # Job, Deployment, ReplicaSet, StatefulSet
    pod = as_object(dig(spec, "template", "spec"))
    if pod:
        yield _job_pods(spec) if kind == "Job" else _count(spec.get("replicas")), pod
    # Kubeflow: pytorchReplicaSpecs, mpiReplicaSpecs, …
    for name, replicas in spec.items():
        if name.endswith("ReplicaSpecs"):
            for role in as_object(replicas).values():
                yield _count(dig(role, "replicas")), as_object(dig(role, "template", "spec"))
    # JobSet: Jobs by the dozen
    for part in iter_objects(spec.get("replicatedJobs")):
        inner = as_object(dig(part, "template", "spec"))
        yield _count(part.get("replicas")) * _job_pods(inner), as_object(dig(inner, "template", "spec"))
    # Volcano
    for task in iter_objects(spec.get("tasks")):
        yield _count(task.get("replicas")), as_object(dig(task, "template", "spec"))
    # Ray: a RayCluster, or a RayJob around one
    cluster = as_object(spec.get("rayClusterSpec")) or spec
    head = as_object(dig(cluster, "headGroupSpec", "template", "spec"))
    if head:
        yield 1, head
    for group in iter_objects(cluster.get("workerGroupSpecs")):
        hosts = _count(group.get("numOfHosts"))
        yield _count(group.get("replicas")) * hosts, as_object(dig(group, "template", "spec"))
    # LeaderWorkerSet: groups of one leader and its workers
    worker = as_object(dig(spec, "leaderWorkerTemplate", "workerTemplate", "spec"))
    if worker:
        groups, size = _count(spec.get("replicas")), _count(dig(spec, "leaderWorkerTemplate", "size"))
        leader = as_object(dig(spec, "leaderWorkerTemplate", "leaderTemplate", "spec")) or worker
        yield groups, leader
        yield groups * (size - 1), worker


def _count(value: object) -> int:
    """Replicas; 1 where it is not said."""
    number = read_int(value)
    return 1 if number is None else max(0, number)


def _job_pods(spec: Json) -> int:
    """Pods of a batch Job at the same time: never more than it has still to complete."""
    parallel, completions = _count(spec.get("parallelism")), read_int(spec.get("completions"))
    return parallel if completions is None else min(parallel, max(0, completions))
