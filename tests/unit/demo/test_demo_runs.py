"""The demo's tracked runs: determined by the seed, ingested like any other run, and varied enough to compare."""

from pathlib import Path

from tracking.site import NOW, run_stores

from clusterscape.demo.tracked_runs import iter_runs

DAY_MS = 86_400_000


def test_runs_show_the_cost_of_sharing_when_the_demo_sent_them(tmp_path: Path) -> None:
    runs = list(iter_runs(seed=7, anchor_ms=NOW))
    assert [run.data for run in runs] == [run.data for run in iter_runs(seed=7, anchor_ms=NOW)]
    with run_stores(tmp_path) as stores:
        for run in runs:
            stores.take(run.run, run.data)
        tree = stores.queries.runs.tree()
    sharing = next(experiment for experiment in tree.experiments if experiment.name == "sharing a GPU")
    slowdown = {repeats.label: repeats.slowdown for repeats in sharing.repeats}
    pair = "2 × train.py batch-size=256"
    slices, mps = slowdown[f"{pair}, NVIDIA H200"], slowdown[f"{pair}, mps, NVIDIA H200"]
    assert slices is not None
    assert mps is not None
    assert (slices.count, mps.count) == (3, 3)
    assert slices.low is not None
    assert mps.high is not None
    assert mps.high < slices.low
    # The demo fills its day of history in from the newest sample on.
    assert all(row.ended_at is not None and row.ended_at < NOW - DAY_MS for row in tree.rows)
    assert {row.state for row in tree.rows} == {"completed", "cancelled", "out_of_memory"}
