import numpy as np
import pytest
from clusters.odd_gpus import Oddness, make_power

from clusterscape.analyze.diagnose import CutKind, Diagnosis, Options, cluster, diagnose, find_peers
from clusterscape.analyze.diagnose.explain import Value
from clusterscape.model.arrays import Float64s
from clusterscape.model.findings import FindingKind
from clusterscape.model.ids import UnitId

PER_NODE = 8
RESTING_ON_CLUSTERS = {FindingKind.ODD_GPU, FindingKind.IMBALANCE, FindingKind.SLOW_NODE}


def attributes(gpus: int) -> dict[str, list[Value | None]]:
    return {
        "node": [f"n{gpu // PER_NODE}" for gpu in range(gpus)],
        "local rank": [gpu % PER_NODE for gpu in range(gpus)],
    }


def judge(values: Float64s, *, count: int | None = None) -> Diagnosis:
    gpus = values.shape[1]
    units = [UnitId(f"n{gpu // PER_NODE}:{gpu % PER_NODE}") for gpu in range(gpus)]
    times = np.arange(len(values)) * 15_000
    options = Options(metric="power_watts", count=count)
    return diagnose(times, {"power_watts": values}, units, attributes=attributes(gpus), options=options)


def masters_and_others(seed: int, gpus: int) -> Float64s:
    """The first GPU of each node draws a fifth more; none is odd."""
    _, watts, _ = make_power(np.random.default_rng([seed, gpus]), gpus, points=240)
    watts[:, ::PER_NODE] *= 1.2
    return watts


@pytest.mark.parametrize("gpus", [16, 32, 64])
@pytest.mark.parametrize("count", [None, 3, 4, 8])
def test_healthy_masters_are_not_odd_whatever_number_of_clusters_is_asked_for(gpus: int, count: int | None) -> None:
    alarms = 0
    for seed in range(6):
        diagnosis = judge(masters_and_others(seed, gpus), count=count)
        alarms += any(finding.kind in RESTING_ON_CLUSTERS for finding in diagnosis.findings)
        assert count is None or diagnosis.clustering.count == count
    assert alarms <= 1


@pytest.mark.parametrize("count", [None, 4])
@pytest.mark.parametrize("oddness", list(Oddness))
def test_odd_gpu_is_found_among_its_peers_when_clusters_are_asked_for(oddness: Oddness, count: int | None) -> None:
    hits = 0
    for seed in range(4):
        _, watts, odd = make_power(np.random.default_rng([seed, 11]), 64, points=240, oddness=oddness)
        watts[:, ::PER_NODE] *= 1.2
        hits += odd in {gpu.column for gpu in judge(watts, count=count).odd.odd}
    assert hits >= 3


def test_findings_are_the_same_whatever_number_of_clusters_is_asked_for() -> None:
    watts = masters_and_others(1, 64)
    titles = [finding.title for finding in judge(watts).findings]
    for count in (1, 2, 3, 5, 12):
        diagnosis = judge(watts, count=count)
        assert [finding.title for finding in diagnosis.findings] == titles
    assert "12 clusters are shown as asked; the samples support 2 clusters. Findings and odd GPUs rest on those 2." in (
        judge(watts, count=12).notes
    )


def test_note_about_the_cut_is_absent_when_it_is_the_one_that_the_samples_support() -> None:
    watts = masters_and_others(2, 64)
    assert not any("shown as asked" in note for note in (*judge(watts).notes, *judge(watts, count=2).notes))


def test_p_values_are_below_the_significance_when_several_groups_are_judged() -> None:
    _, watts, _ = make_power(np.random.default_rng(3), 64, oddness=Oddness.SLOWER)
    watts[:, ::PER_NODE] *= 1.2
    diagnosis = judge(watts)
    assert len(diagnosis.peers.groups) == 2
    assert all(gpu.p_value <= diagnosis.odd.significance for gpu in diagnosis.odd.odd)


def line(places: list[float]) -> Float64s:
    """Condensed distances of GPUs on a line."""
    first, second = np.triu_indices(len(places), 1)
    distances: Float64s = np.abs(np.array(places)[first] - np.array(places)[second])
    return distances


def test_a_small_cluster_is_a_group_of_its_own_only_when_its_gpus_share_an_attribute() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(0, 0.1, 16)
    places[[0, 8]] += 50.0
    clustering = cluster(line(places.tolist()))
    assert clustering.cut is CutKind.AUTOMATIC
    assert clustering.members(1).tolist() == [0, 8]
    masters = find_peers(clustering, attributes(16))
    assert [group.tolist() for group in masters.groups][1:] == [[0, 8]]
    unrelated = find_peers(clustering, {"local rank": [gpu % 5 for gpu in range(16)]})
    assert [group.tolist() for group in unrelated.groups] == [list(range(16))]


def test_supported_clusters_are_those_of_the_automatic_cut_when_another_is_asked_for() -> None:
    rng = np.random.default_rng(1)
    places = np.concatenate([rng.normal(0, 0.1, 12), rng.normal(9, 0.1, 12)]).tolist()
    automatic, of_five = cluster(line(places)), cluster(line(places), count=5)
    assert of_five.count == 5
    assert of_five.supported.labels.tolist() == automatic.labels.tolist()
    assert of_five.supported.height == automatic.height
    assert automatic.supported is automatic
