import pytest

from clusterscape.query.reasons import explain_pending


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("Insufficient nvidia.com/gpu", "No node that could run it has enough free GPUs."),
        ("Insufficient nvidia.com/mig-1g.10gb", "No node that could run it has enough free nvidia.com/mig-1g.10gb."),
        ("KueueQuota", "Waits until its Kueue queue has quota for it."),
        ("Whatever", "The scheduler says “Whatever”."),
    ],
)
def test_kubernetes_reasons_are_explained_when_a_workload_waits(reason: str, sentence: str) -> None:
    assert explain_pending(reason) == sentence
