from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from clusters.kubernetes_objects import (
    RUNNING,
    allocated,
    condition,
    container_status,
    deployment,
    ended,
    job,
    node,
    pod,
    replica_set,
    resource_claim,
    resource_slice,
    waiting,
)
from clusters.kubernetes_snapshots import stored

from clusterscape.collect.kubernetes.resources import RESOURCES

MANIFEST = Path(__file__).parents[4] / "deploy/kubernetes/clusterscape.yaml"


def test_granted_resources_match_the_collector_when_the_role_is_shipped() -> None:
    (role,) = (manifest for manifest in yaml.safe_load_all(MANIFEST.read_text()) if manifest["kind"] == "ClusterRole")
    granted = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    assert granted == {(resource.group, resource.plural) for resource in RESOURCES}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}


def test_objects_follow_the_published_schemas_when_tests_build_them() -> None:
    service = stored(deployment("chat"))
    holder = stored(pod("p", nodeName="a", resourceClaims=[{"name": "g", "resourceClaimName": "two"}]))
    resources = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}]
    objects = [
        node("a", cordoned=True, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
        node("b", ready="Unknown"),
        holder | {"status": RUNNING | {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "two"}]}},
        pod("q") | {"status": waiting("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")},
        pod("r") | {"status": ended(137, "OOMKilled")},
        pod("s")
        | {
            "status": RUNNING
            | {"containerStatuses": [container_status({"running": {}}, allocatedResourcesStatus=resources)]}
        },
        job("train", pods=4, suspend=True) | {"status": {"conditions": [condition("Complete")], "succeeded": 4}},
        service,
        replica_set(service),
        resource_slice("a", 4),
        resource_claim("two") | {"status": allocated("a", ["gpu-0"], holder)},
    ]
    version = kubernetes_validate.latest_version()
    for entity in objects:
        kubernetes_validate.validate(entity, version, strict=True)


def test_object_is_refused_when_it_is_invalid() -> None:
    wrong = node("a")
    wrong["spec"]["unschedulable"] = "yes"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)
