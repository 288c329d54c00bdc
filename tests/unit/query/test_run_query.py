"""Queries about runs: the tree with workloads, baselines and repeats; lines over time, step, epoch and phase; bands."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tracking.site import RunStores, run_stores, spooled

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.query.runs.series import LineRequest
from clusterscape.store.records.contract import RunList

Series = dict[tuple[str, str | None, str], list[float]]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[RunStores]:
    with run_stores(tmp_path) as opened:
        yield opened


def own_energy(run: str, joules: float) -> dict[tuple[str, str | None, str], list[float]]:
    return {("energy_joules", f"run:{run}/n1:0", "process"): [0.0, joules / 2, joules]}


def progress(samples: float) -> dict[tuple[str, str | None, str], list[float]]:
    return {("samples", None, "run"): [0.0, samples / 3, samples / 1.5, samples]}


def test_workload_has_slowdown_and_fairness_when_the_same_ran_alone_before(stores: RunStores) -> None:
    stores.take(
        "a", spooled("a", about={"experiment": "e", "workload": "alone"}, series=progress(1000) | own_energy("a", 500))
    )
    pair = {"experiment": "e", "workload": "pair", "collocation": "mps"}
    stores.take("b", spooled("b", start_s=20, about=pair, series=progress(800) | own_energy("b", 300)))
    stores.take("c", spooled("c", start_s=20.05, about=pair, series=progress(400) | own_energy("c", 300)))
    (experiment,) = stores.queries.runs.tree().experiments
    together, alone = experiment.workloads
    assert (alone.runs, alone.slowdown, alone.fairness) == (["a"], None, None)
    assert together.runs == ["b", "c"]
    assert together.makespan_s == pytest.approx(10.05)
    assert together.slowdown == pytest.approx((1.25 + 2.5) / 2)
    assert together.fairness == pytest.approx(1.2**2 / (2 * (0.8**2 + 0.4**2)))
    assert together.energy is not None
    assert (together.energy.joules, together.energy.method) == (600, "estimated")
    assert together.joules_per_work == pytest.approx(0.5)
    assert together.per_second == pytest.approx(120, rel=1e-3)
    row = stores.queries.runs.one("c").row
    assert row.slowdown is not None
    assert (row.slowdown.baseline, row.slowdown.basis, row.slowdown.energy_ratio) == (["a"], "throughput", 1.5)
    assert stores.queries.runs.workload("c")[0].id == "b"


def test_intervals_are_computed_when_a_workload_was_repeated(stores: RunStores) -> None:
    for number, seconds in enumerate((10.0, 11.0, 12.0)):
        stores.take(
            f"r{number}",
            spooled(f"r{number}", start_s=100 * number, seconds=seconds, about={"experiment": "e", "workload": "w"}),
        )
    (experiment,) = stores.queries.runs.tree().experiments
    (repeats,) = experiment.repeats
    assert repeats.workloads == ["r0", "r1", "r2"]
    assert repeats.makespan_s is not None
    assert (repeats.makespan_s.mean, repeats.makespan_s.count) == (11.0, 3)
    assert repeats.makespan_s.low == pytest.approx(11 - 4.302653 / 3**0.5, abs=1e-4)


def test_recorded_runs_have_energy_with_scope_and_method_when_listed(stores: RunStores) -> None:
    run = stores.take_recorded("solo")
    (row,) = stores.queries.runs.all()
    assert row.run == run
    assert row.energy is not None
    assert (round(row.energy.joules), row.energy.scope, row.energy.method) == (6035, "process", "measured")
    assert row.power_watts == pytest.approx(407.46, abs=0.01)
    detail = stores.queries.runs.one(run)
    power = next(series for series in detail.series if series.metric == "power_watts")
    assert (power.place, power.scope, power.count) == ("h200:0", "device", 149)
    names = stores.queries.runs.metrics([run])
    assert next(metric for metric in names.metrics if metric.metric == "power_watts").unit == "watts"


def lines(stores: RunStores, **changes: object) -> pl.DataFrame:
    return stores.queries.run_series.lines(LineRequest(**{"runs": ["a"], "metrics": ["loss"], **changes}))  # type: ignore[arg-type]


def test_lines_have_any_axis_when_the_run_reported_steps_and_epochs(stores: RunStores) -> None:
    series = {("loss", None, "run"): [5.0, 4.0, 3.0, 2.0, 1.0], ("power_watts", "n1:0", "device"): [1.0, 2.0, 3.0]}
    marks = [("epoch", "0", 0.0), ("epoch", "1", 5.0), ("phase", "train", 2.5)]
    stores.take("a", spooled("a", series=series, steps=True, marks=marks))
    assert lines(stores)["x"].to_list() == [0.0, 2.5, 5.0, 7.5, 10.0]
    assert lines(stores, phase="train")["x"].to_list() == [-2.5, 0.0, 2.5, 5.0, 7.5]
    assert lines(stores, phase="other").is_empty()
    assert lines(stores, axis="step", metrics=["loss", "power_watts"]).rows() == [
        *[("a", "loss", None, "run", float(step), 5.0 - step) for step in range(5)],
        ("a", "power_watts", "n1:0", "device", 0.0, 1.0),
        ("a", "power_watts", "n1:0", "device", 2.0, 2.0),
        ("a", "power_watts", "n1:0", "device", 4.0, 3.0),
    ]
    assert lines(stores, axis="epoch")["x"].to_list() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert lines(stores, start=3.0, end=6.0)["value"].to_list() == [3.0]
    assert stores.queries.runs.metrics(["a"]).phases == ["train"]


def test_every_sample_counts_when_many_fall_into_one_millisecond(stores: RunStores) -> None:
    values = [float(number % 7) for number in range(5000)]
    values[4321] = 99.0
    stores.take("a", spooled("a", seconds=0.5, series={("loss", None, "run"): values}, steps=True))
    table = lines(stores, axis="step", points=100)
    assert len(table) <= 102
    assert (table["value"].max(), table["x"][-1]) == (99.0, 4999.0)


def test_band_holds_the_repeats_when_runs_are_grouped(stores: RunStores) -> None:
    for run, level in (("a", 1.0), ("b", 3.0)):
        stores.take(run, spooled(run, series={("loss", None, "run"): [level, level]}))
    request = LineRequest(runs=(), metrics=["loss"], points=5)
    table = stores.queries.run_series.bands([["a", "b"], ["a"]], request, band="range")
    assert table.filter(group=0).select("mean", "low", "high", "lines").unique().row(0) == (2.0, 1.0, 3.0, 2)
    assert table.filter(group=1).select("mean", "low", "high", "lines").unique().row(0) == (1.0, 1.0, 1.0, 1)


def test_other_runs_are_answered_when_one_was_deleted(stores: RunStores) -> None:
    for run in ("a", "b"):
        stores.take(run, spooled(run, series={("loss", None, "run"): [3.0, 2.0, 1.0]}))
    stores.intake.delete("a")
    assert set(lines(stores, runs=["a", "b"], metrics=["loss"])["run"]) == {"b"}
    assert stores.queries.runs.metrics(["a", "b"]).metrics[0].runs == 1
    request = LineRequest(runs=(), metrics=["loss"], points=10)
    assert set(stores.queries.run_series.bands([["a"], ["a", "b"]], request, band="range")["group"]) == {1}
    for ask in (lambda: lines(stores, runs=["a"], metrics=["loss"]), lambda: stores.queries.runs.metrics(["a"])):
        with pytest.raises(NotFoundError, match="no run `a`"):
            ask()


def test_question_is_refused_when_it_makes_no_sense(stores: RunStores) -> None:
    with pytest.raises(NotFoundError, match="no run `x`"):
        lines(stores, runs=["x"])
    with pytest.raises(QueryError, match="unknown axis"):
        lines(stores, axis="moon")
    with pytest.raises(QueryError, match="at least one"):
        lines(stores, runs=[])
    with pytest.raises(QueryError, match="too many"):
        lines(stores, runs=["a"] * 1000, points=20_000)
    with pytest.raises(NotFoundError, match="no run workload"):
        stores.queries.runs.workload("x")


def test_cost_of_work_is_a_line_when_energy_and_work_are_reported(stores: RunStores) -> None:
    seconds = list(range(0, 101, 2))
    series = {
        ("energy_joules", "n1:0", "device"): [1e6 + 300.0 * second for second in seconds],
        ("energy_joules", "run:a/n1:0", "process"): [100.0 * second for second in seconds],
        ("samples", None, "run"): [20.0 * second for second in seconds],
    }
    stores.take("a", spooled("a", seconds=100.0, series=series))
    labels = {metric.metric: metric.label for metric in stores.queries.runs.metrics(["a"]).metrics}
    assert labels["joules_per_work"] == "Joules per sample"
    assert labels["work_per_second_per_watt"] == "Samples/s per watt"
    table = lines(stores, metrics=["joules_per_work", "work_per_second_per_watt"])
    assert table["scope"].unique().to_list() == ["run"]
    cost, gain = (table.filter(metric=name) for name in ("joules_per_work", "work_per_second_per_watt"))
    assert cost["value"].to_list() == pytest.approx([5.0] * len(cost))  # the run's own part, not the whole GPU's
    assert gain["value"].to_list() == pytest.approx([0.2] * len(gain))
    assert (cost["x"][0], cost["x"][-1]) == (10.0, 100.0)
    assert lines(stores, metrics=["joules_per_work"], scope="device").is_empty()


def test_work_is_computed_from_steps_or_a_rate_when_there_are_no_samples(stores: RunStores) -> None:
    joules = [100.0 * second for second in range(0, 101, 2)]
    energy: Series = {("energy_joules", "run:a/n1:0", "process"): joules}
    losses: Series = {("loss", None, "run"): [1.0] * 101}
    stores.take("a", spooled("a", seconds=100.0, series=energy | losses, steps=True, params={"batch-size": "4"}))
    assert lines(stores, metrics=["joules_per_work"])["value"].to_list() == pytest.approx([25.0] * 46)
    energy = {("energy_joules", "run:b/n1:0", "process"): joules}
    rates: Series = {("tokens_per_second", None, "run"): [50.0] * 101}
    stores.take("b", spooled("b", start_s=200, seconds=100.0, series=energy | rates))
    table = lines(stores, runs=["b"], metrics=["joules_per_work"])
    assert table["value"].to_list() == pytest.approx([2.0] * len(table))
    assert stores.queries.runs.metrics(["a", "b"]).metrics[-3].label == "Joules per work"
    stores.take("c", spooled("c", start_s=400, series=losses))
    assert lines(stores, runs=["c"], metrics=["joules_per_work"]).is_empty()


def test_runs_are_read_once_when_nothing_changed(stores: RunStores, monkeypatch: pytest.MonkeyPatch) -> None:
    stores.take("a", spooled("a"))
    reads = []
    records = stores.records
    read = records.runs

    def counted(*, after: int = 0) -> RunList:
        reads.append(after)
        return read(after=after)

    monkeypatch.setattr(records, "runs", counted)
    for _ in range(3):
        assert len(stores.queries.runs.tree().rows) == 1
    assert reads == [0]
    stores.take("b", spooled("b", start_s=20))
    assert {row.run for row in stores.queries.runs.all()} == {"a", "b"}
    assert stores.queries.runs.one("b").listens_to == []
    assert reads == [0, 0]
