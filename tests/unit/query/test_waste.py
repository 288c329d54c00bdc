"""Wasted GPU-hours."""

import numpy as np
import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster, unit
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.model import Allocation, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.job_summaries import IDLE_BELOW
from clusterscape.query.waste import STEP_MS, share_out

END = NOW // STEP_MS * STEP_MS


def test_hours_of_an_idle_job_are_wasted_when_it_was_measured(small_cluster: SmallCluster) -> None:
    idle = Workload(
        id=WorkloadId("slurm:9"), state=WorkloadState.RUNNING, gpus_requested=1, started_at=UnixMs(END - HOUR_MS)
    )
    small_cluster.records.write_workloads([idle], at_ms=NOW)
    small_cluster.records.write_allocations(
        [Allocation(workload=idle.id, unit=unit("n3", 0), from_at=UnixMs(END - HOUR_MS))]
    )
    for step in range(6):
        small_cluster.store_sample("gpu_util_ratio", unit("n3", 0), END - HOUR_MS + step * STEP_MS, 0.01)
    answer = small_cluster.queries.waste.waste()
    assert (answer.end - answer.start, answer.idle_below_ratio) == (24 * HOUR_MS, 0.05)
    assert answer.wasted_gpu_hours == pytest.approx(1.0)
    # One GPU for two hours long ago; two, of which one is shared, for an hour; and the idle one.
    assert answer.held_gpu_hours == pytest.approx(2 + 2 * 1 + 1)
    # Of the two, three steps each have a sample; the fourth sample is later than the last whole step.
    assert answer.measured_gpu_hours == pytest.approx(1 + 2 * 3 / 6)


def test_units_add_up_to_the_whole_when_asked_one_by_one(small_cluster: SmallCluster) -> None:
    waste = small_cluster.queries.waste
    table = waste.by_unit()
    assert table["held_gpu_hours"].sum() == pytest.approx(waste.waste().held_gpu_hours)
    assert table["measured_gpu_hours"].sum() == pytest.approx(waste.waste().measured_gpu_hours)
    shared = {row["workload"]: row["held_gpu_hours"] for row in table.iter_rows(named=True) if row["unit"] == "n1:1"}
    assert len(shared) == 2
    assert sum(shared.values()) == pytest.approx(1.0)
    unmeasured = table.filter(table["measured_gpu_hours"] == 0)
    assert unmeasured["wasted_gpu_hours"].null_count() == len(unmeasured)


def test_waste_is_null_when_nothing_was_measured(small_cluster: SmallCluster) -> None:
    small_cluster.now = UnixMs(NOW - 5 * HOUR_MS)
    answer = small_cluster.queries.waste.waste(hours=2)
    assert (answer.wasted_gpu_hours, answer.measured_gpu_hours) == (None, 0)
    assert answer.held_gpu_hours == pytest.approx(1)


spans = st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(1, 6)).filter(lambda span: span[1] < span[2])
values = st.lists(
    st.lists(st.sampled_from([np.nan, 0.0, 0.04, 0.2, 1.0]), min_size=6, max_size=6), min_size=3, max_size=3
)


@given(st.lists(spans, max_size=6), values)
def test_sums_are_those_of_single_steps_when_allocations_are_random(
    held: list[tuple[int, int, int]], table: list[list[float]]
) -> None:
    grid = np.array(table)
    row, begin, stop = (np.array([span[i] for span in held], dtype=np.int64) for i in range(3))
    cells = {(u, s) for u, first, last in held for s in range(first, last)}
    measured = {cell for cell in cells if np.isfinite(grid[cell])}
    wasted = 0.0
    for u, first, last in held:
        mine = [(u, s) for s in range(first, last) if (u, s) in measured]
        if mine and sum(grid[cell] for cell in mine) < IDLE_BELOW * len(mine) - 1e-9:
            wasted += sum(1 / sum(o[0] == u and o[1] <= s < o[2] for o in held) for _, s in mine)
    steps, counted, shares = share_out(row, begin, stop, grid)
    assert (steps, counted) == (len(cells), len(measured))
    assert shares.sum(axis=0) == pytest.approx([steps, counted, wasted])
