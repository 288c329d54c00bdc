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


def test_the_shipped_role_grants_exactly_what_is_read() -> None:
    (role,) = (each for each in yaml.safe_load_all(MANIFEST.read_text()) if each["kind"] == "ClusterRole")
    granted = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    assert granted == {(resource.group, resource.plural) for resource in RESOURCES}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}


def test_made_objects_follow_the_published_schemas_of_kubernetes() -> None:
    service = stored(deployment("chat"))
    holder = stored(pod("p", nodeName="a", resourceClaims=[{"name": "g", "resourceClaimName": "two"}]))
    told = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}]
    things = [
        node("a", cordoned=True, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
        node("b", ready="Unknown"),
        holder | {"status": RUNNING | {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "two"}]}},
        pod("q") | {"status": waiting("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")},
        pod("r") | {"status": ended(137, "OOMKilled")},
        pod("s")
        | {
            "status": RUNNING
            | {"containerStatuses": [container_status({"running": {}}, allocatedResourcesStatus=told)]}
        },
        job("train", pods=4, suspend=True) | {"status": {"conditions": [condition("Complete")], "succeeded": 4}},
        service,
        replica_set(service),
        resource_slice("a", 4),
        resource_claim("two") | {"status": allocated("a", ["gpu-0"], holder)},
    ]
    version = kubernetes_validate.latest_version()
    for thing in things:
        kubernetes_validate.validate(thing, version, strict=True)


def test_an_object_that_is_wrong_is_refused_when_validated() -> None:
    wrong = node("a")
    wrong["spec"]["unschedulable"] = "yes"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)
