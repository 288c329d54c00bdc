"""Why a workload waits: a reason code and the scheduler's message. ``query`` explains the codes."""

import re
from collections.abc import Mapping

from clusterscape.collect.kubernetes.facts import KueueWorkload, PodFacts, PodGroup
from clusterscape.collect.kubernetes.values import StatusCondition

Reason = tuple[str, str | None]
"""Word and sentence."""

# What kube-scheduler says of nodes, the more telling first: where some nodes lack GPUs and others are tainted, the GPUs are it.
_CAUSES: tuple[tuple[str, str], ...] = (
    (r"didn't match Pod's node affinity|node selector", "NodeAffinity"),
    (r"untolerated taint|had taint", "UntoleratedTaint"),
    (r"cannot allocate all claims|resourceclaim", "ClaimsNotAllocated"),
    (r"volume", "VolumeBinding"),
    (r"were unschedulable", "NodesCordoned"),
    (r"topology spread|anti-affinity|pod affinity", "PodAffinity"),
)
_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]+)")


def read_scheduler_reason(waiting: StatusCondition | None) -> Reason | None:
    """Of a pod that is not bound: ``("Insufficient nvidia.com/gpu", "0/5 nodes are available: …")``."""
    if waiting is None or waiting.reason is None:
        return None
    sentence = waiting.message
    if waiting.reason != "Unschedulable" or sentence is None:
        return waiting.reason, sentence
    lacking = [name.rstrip(".") for name in _INSUFFICIENT.findall(sentence)]
    lacking.sort(key=lambda resource: "/" not in resource)  # GPUs and their kin before CPUs and memory
    if lacking:
        return f"Insufficient {lacking[0]}", sentence
    for pattern, reason in _CAUSES:
        if re.search(pattern, sentence, re.IGNORECASE):
            return reason, sentence
    return "Unschedulable", sentence


def read_kueue_reason(workload: KueueWorkload) -> Reason | None:
    """None once it is admitted."""
    conditions: Mapping[str, StatusCondition] = workload.conditions
    admitted, reserved, evicted = conditions.get("Admitted"), conditions.get("QuotaReserved"), conditions.get("Evicted")
    if not workload.is_active:
        return "KueueStopped", evicted.message if evicted else None
    if admitted and admitted.is_true:
        return None
    if reserved and reserved.is_true:
        return "KueueAdmissionCheck", admitted.message if admitted else None
    if reserved is None:
        return "KueueQueued", None
    if evicted and evicted.is_true and evicted.reason == "Preempted":
        return "KueuePreempted", evicted.message
    return ("KueueInadmissible" if reserved.reason == "Inadmissible" else "KueueQuota"), reserved.message


def find_reason(
    pods: list[PodFacts], kueue: KueueWorkload | None, group: PodGroup | None, *, is_suspended: bool
) -> Reason:
    """Queue quota first, then the pod group, then the most common reason of its pods."""
    if kueue is not None and (reason := read_kueue_reason(kueue)) is not None:
        return reason
    if group is not None and group.waiting is not None:
        return group.waiting.reason or "NotEnoughResources", group.waiting.message
    if group is not None and group.phase == "Pending":
        return "VolcanoQueued", None
    if is_suspended:
        return "JobSuspended", None
    reasons = [reason for pod in pods if (reason := read_scheduler_reason(pod.waiting)) is not None]
    if reasons:
        codes = [code for code, _ in reasons]
        common = max(sorted(set(codes)), key=codes.count)
        return next(reason for reason in reasons if reason[0] == common)
    return "None", None
