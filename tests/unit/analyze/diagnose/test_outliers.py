import numpy as np
import pytest
from clusters.odd_gpus import Oddness, make_power, make_utilization

from clusterscape.analyze.diagnose.features import find_quantum
from clusterscape.analyze.diagnose.outliers import find_odd_gpus


@pytest.mark.parametrize("oddness", list(Oddness))
def test_odd_gpu_comes_first_when_one_is_planted(oddness: Oddness) -> None:
    hits = 0
    for seed in range(8):
        _, watts, odd = make_power(np.random.default_rng([seed, 1]), 128, oddness=oddness)
        odd_gpus = find_odd_gpus(watts)
        hits += bool(odd_gpus.ranked[0] == odd and odd_gpus.odd and odd_gpus.odd[0].column == odd)
    assert hits == 8


def test_nothing_is_odd_when_none_is_planted() -> None:
    alarms = [bool(find_odd_gpus(make_power(np.random.default_rng([seed, 2]), 128)[1]).odd) for seed in range(30)]
    assert sum(alarms) <= 1


@pytest.mark.parametrize("gpus", [8, 16, 64])
def test_false_alarms_are_rare_when_gpus_are_few_and_tails_long(gpus: int) -> None:
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, gpus])
        values = rng.normal(size=(120, gpus)) + rng.standard_t(4, gpus)
        alarms += bool(find_odd_gpus(values).odd)
    assert alarms <= 3


def test_a_gpu_is_odd_when_it_falls_silent() -> None:
    _, watts, _ = make_power(np.random.default_rng(5), 64)
    watts[300:, 17] = np.nan
    odd_gpus = find_odd_gpus(watts)
    assert odd_gpus.odd[0].column == 17
    assert odd_gpus.odd[0].features[0][0] == "silence"


def test_the_feature_is_named_when_a_gpu_is_odd_in_one_way() -> None:
    for oddness, names in (
        (Oddness.DRIFTING, {"drift", "late", "step"}),
        (Oddness.SPIKY, {"dips"}),
        (Oddness.SLOWER, {"level"}),
    ):
        _, watts, _ = make_power(np.random.default_rng(6), 256, oddness=oddness)
        assert find_odd_gpus(watts).odd[0].features[0][0] in names


def test_only_the_given_gpus_are_compared_when_columns_are_named() -> None:
    _, watts, _ = make_power(np.random.default_rng(7), 64)
    watts[:, :32] += 150.0
    odd_gpus = find_odd_gpus(watts, columns=np.arange(32))
    assert sorted(odd_gpus.ranked.tolist()) == list(range(32))
    assert not odd_gpus.odd


@pytest.mark.parametrize("shape", [(100, 1), (100, 4), (1, 64), (0, 64)])
def test_note_is_added_when_there_is_too_little_data(shape: tuple[int, int]) -> None:
    odd_gpus = find_odd_gpus(np.ones(shape))
    assert not odd_gpus.odd
    assert odd_gpus.note is not None


@pytest.mark.filterwarnings("error")
def test_nothing_is_odd_when_all_values_are_equal_or_missing() -> None:
    assert not find_odd_gpus(np.full((50, 20), 1.0)).odd
    assert not find_odd_gpus(np.full((50, 20), np.nan)).odd


@pytest.mark.parametrize("gpus", [16, 64, 512])
def test_no_gpu_is_odd_when_values_are_whole_percents_and_some_gpus_lag_by_a_sample(gpus: int) -> None:
    alarms = 0
    for seed in range(10):
        _, util = make_utilization(np.random.default_rng([seed, gpus]), gpus)
        alarms += bool(find_odd_gpus(util).odd)
    assert alarms <= 1


def test_a_gpu_is_still_odd_when_whole_percents_hide_the_others_spread() -> None:
    _, util = make_utilization(np.random.default_rng(8), 128)
    util[:, 40] -= 0.08
    util[300:, 70] = 0.0
    odd_gpus = find_odd_gpus(util)
    assert {gpu.column for gpu in odd_gpus.odd} == {40, 70}
    assert odd_gpus.odd[[gpu.column for gpu in odd_gpus.odd].index(40)].features[0][0] == "level"


def test_a_gpu_lags_when_it_is_several_samples_behind() -> None:
    named = []
    for seed in range(5):
        _, watts, odd = make_power(np.random.default_rng([seed, 512]), 512, oddness=Oddness.LAGGING)
        odd_gpus = find_odd_gpus(watts)
        assert odd_gpus.odd[0].column == odd
        named.append(odd_gpus.odd[0].features[0][0])
    assert named.count("lag") >= 4


def test_the_quantum_is_found_when_values_are_steps_and_next_to_nothing_when_not() -> None:
    rng = np.random.default_rng(9)
    assert find_quantum(rng.integers(90, 101, (100, 20)) / 100) == pytest.approx(0.01, rel=1e-3)
    assert find_quantum(rng.normal(size=(100, 20))) < 1e-3
    assert find_quantum(np.full((5, 5), np.nan)) == find_quantum(np.ones((5, 5))) == 0.0
