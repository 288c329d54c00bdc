import numpy as np
import pytest
from clusters.odd_gpus import make_power
from numpy.typing import NDArray

from clusterscape.analyze.diagnose import Options, diagnose
from clusterscape.model.ids import UnitId

Floats = NDArray[np.float64]


def units(gpus: int) -> list[UnitId]:
    return [UnitId(f"n{place // 8}:{place % 8}") for place in range(gpus)]


def watts(gpus: int, points: int = 240) -> tuple[NDArray[np.int64], Floats]:
    times, values, _ = make_power(np.random.default_rng(0), gpus, points=points)
    return times, values


@pytest.mark.parametrize("by", ["histogram", "euclidean", "correlation"])
def test_one_gpu_is_its_own_cluster_when_it_is_alone(by: str) -> None:
    times, values = watts(1)
    diagnosis = diagnose(times, {"power_watts": values}, units(1), options=Options(by=by))  # type: ignore[arg-type]
    assert diagnosis.clustering.labels.tolist() == [0]
    assert not diagnosis.odd.odd
    assert "The workload has one GPU: there are no others to compare it with." in diagnosis.notes


@pytest.mark.parametrize("metrics", [{}, {"power_watts": np.empty((0, 8))}, {"power_watts": np.full((0, 8), np.nan)}])
def test_note_is_added_when_there_are_no_samples(metrics: dict[str, Floats]) -> None:
    diagnosis = diagnose([], metrics, units(8))
    assert diagnosis.metric is None
    assert diagnosis.findings == ()
    assert diagnosis.notes == ("There are no samples in this window.",)


@pytest.mark.parametrize("by", ["histogram", "euclidean", "correlation"])
def test_note_is_added_when_there_is_one_sample(by: str) -> None:
    values = np.arange(8.0)[None, :]
    diagnosis = diagnose([1_000], {"power_watts": values}, units(8), options=Options(by=by))  # type: ignore[arg-type]
    assert diagnosis.findings == ()
    assert diagnosis.notes[0] == "There is only one sample: changes over time cannot be analyzed."


def test_gpus_are_left_out_and_named_when_they_miss_the_metric() -> None:
    times, values = watts(24)
    values[:, [4, 9]] = np.nan
    diagnosis = diagnose(times, {"power_watts": values}, units(24))
    assert diagnosis.clustering.left_out.tolist() == [4, 9]
    assert "Power is missing on 2 of 24 GPUs (n0:4, n1:1)." in diagnosis.notes


def test_gaps_are_reported_when_no_gpu_was_measured() -> None:
    times, values = watts(16)
    times = times + np.where(np.arange(times.size) > 100, 3_600_000, 0)
    diagnosis = diagnose(times, {"power_watts": values}, units(16), options=Options(by="euclidean"))
    assert diagnosis.clustering.count == 1
    assert any("no samples of any GPU for 60 min in total (one gap)" in note for note in diagnosis.notes)


@pytest.mark.parametrize("by", ["histogram", "euclidean", "correlation"])
def test_replacement_is_reported_when_a_gpu_ends_where_another_starts(by: str) -> None:
    times, values = watts(24)
    values[120:, 5] = np.nan
    values[:121, 6] = np.nan
    diagnosis = diagnose(
        times, {"power_watts": values}, units(24), attributes={"node": [f"n{k // 8}" for k in range(24)]},
        options=Options(by=by),  # type: ignore[arg-type]
    )  # fmt: skip
    assert "n0:5 stops where n0:6 starts: the GPU was probably replaced." in diagnosis.notes
    assert diagnosis.clustering.compared.size == 24


def test_result_is_the_same_when_the_clock_jumped() -> None:
    times, values = watts(24)
    order = np.r_[np.arange(100), np.arange(150, 240), np.arange(100, 150)]
    straight = diagnose(times, {"power_watts": values}, units(24))
    jumped = diagnose(times[order], {"power_watts": values[order]}, units(24))
    assert np.array_equal(straight.clustering.labels, jumped.clustering.labels)
    assert np.array_equal(straight.odd.ranked, jumped.odd.ranked)
    assert jumped.notes[0].startswith("The clock was set back once")


def test_other_metrics_are_still_judged_when_the_chosen_one_is_missing() -> None:
    times, values = watts(24)
    util = np.zeros((times.size, 24))
    diagnosis = diagnose(
        times, {"power_watts": values, "gpu_util_ratio": util}, units(24), options=Options(metric="sm_clock_hertz")
    )
    assert diagnosis.notes[0] == "There are no samples of sm_clock_hertz in this window."
    assert [finding.kind for finding in diagnosis.findings] == ["idle_tail"]


def test_shapes_are_refused_when_columns_and_units_differ() -> None:
    with pytest.raises(ValueError, match="4 columns, but there are 3 units"):
        diagnose([0, 1], {"power_watts": np.ones((2, 4))}, units(3))


@pytest.mark.parametrize("by", ["histogram", "euclidean", "correlation"])
def test_a_sample_of_lag_is_no_cluster_when_half_of_the_gpus_are_read_later(by: str) -> None:
    times = np.arange(480) * 15_000
    course = np.where(np.arange(481) % 40 < 4, 0.1, 0.8)
    rng = np.random.default_rng(3)
    util = np.stack([course[1:] if gpu % 2 else course[:-1] for gpu in range(64)], axis=1)
    util += rng.normal(0, 0.01, util.shape)
    diagnosis = diagnose(times, {"gpu_util_ratio": util}, units(64), options=Options(by=by))  # type: ignore[arg-type]
    assert diagnosis.clustering.count == 1
    if by != "correlation":
        util[:, ::8] += 0.2
        masters = diagnose(times, {"gpu_util_ratio": util}, units(64), options=Options(by=by))  # type: ignore[arg-type]
        assert masters.clustering.members(1).tolist() == list(range(0, 64, 8))
