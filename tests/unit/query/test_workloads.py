"""Workloads, search, series and the words for waiting."""

import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import WorkloadState
from clusterscape.query.reasons import explain_pending


def test_times_run_until_now_when_a_workload_is_active(small_cluster: SmallCluster) -> None:
    running = small_cluster.queries.workloads.detail("slurm:1")
    assert (running.workload.wait_s, running.workload.run_s, running.workload.gpu_hours) == (3600, 3600, 2)
    assert [a.unit for a in running.allocations] == ["n1:0", "n1:1"]
    waiting = small_cluster.queries.workloads.detail("slurm:3").workload
    assert (waiting.wait_s, waiting.run_s, waiting.gpu_hours) == (3600, None, None)
    assert waiting.pending_reason_text == "The limit of its quality of service on GPUs for its owner is reached."


def test_times_end_with_the_workload_when_it_has_ended(small_cluster: SmallCluster) -> None:
    ended = small_cluster.queries.workloads.detail("slurm:0").workload
    assert (ended.wait_s, ended.run_s, ended.exit_code) == (3600, 7200, 1)


def test_only_matches_are_listed_when_filters_are_given(small_cluster: SmallCluster) -> None:
    page = small_cluster.queries.workloads.page
    assert {w.workload for w in page(user="ada").workloads} == {"slurm:1", "slurm:3"}
    assert {w.workload for w in page(states=[WorkloadState.WAITING]).workloads} == {"slurm:3"}
    assert {w.workload for w in page(text="100%_").workloads} == {"slurm:3"}
    assert page(limit=1).total == 4
    with pytest.raises(QueryError):
        page(limit=0)


def test_unknown_workload_is_not_found_when_asked(small_cluster: SmallCluster) -> None:
    with pytest.raises(NotFoundError, match="slurm:99"):
        small_cluster.queries.workloads.detail("slurm:99")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "Next in line"),
        ("ReqNodeNotAvail, UnavailableNodes:gpu-[1-3]", "down, drained or reserved"),
        ("AssocGrpGRES", "limit of its project on GPUs"),
        ("QOSMaxCpuPerUserLimit", "limit of its quality of service on CPUs for its owner"),
        ("SomethingNew", "“SomethingNew”"),
    ],
)
def test_reason_becomes_a_sentence_when_explained(reason: str, words: str) -> None:
    assert words in (explain_pending(reason) or "")


def test_nothing_is_explained_when_there_is_no_reason() -> None:
    assert explain_pending(None) is None


def test_series_covers_a_workloads_life_when_no_range_is_given(small_cluster: SmallCluster) -> None:
    table = small_cluster.queries.series.series(metrics=["gpu_util_ratio"], workload="slurm:1", points=60)
    assert set(table["unit"]) == {"n1:0", "n1:1"}
    assert len(table) == 8
    assert set(table.filter(table["unit"] == "n1:0")["value"]) == {0.9}


def test_only_held_times_count_when_another_workload_had_the_unit(small_cluster: SmallCluster) -> None:
    table = small_cluster.queries.series.series(
        metrics=["gpu_util_ratio"], workload="slurm:0", start_ms=NOW - 9 * HOUR_MS, end_ms=NOW
    )
    assert table.is_empty()


def test_series_says_what_is_missing_when_asked_wrongly(small_cluster: SmallCluster) -> None:
    series = small_cluster.queries.series.series
    with pytest.raises(QueryError, match="exactly one"):
        series(metrics=["gpu_util_ratio"])
    with pytest.raises(QueryError, match="unknown metric"):
        series(metrics=["x"], node="n1")
    with pytest.raises(QueryError, match="after the start"):
        series(metrics=["gpu_util_ratio"], node="n1", start_ms=5, end_ms=5)
    with pytest.raises(QueryError, match="too many"):
        series(metrics=["gpu_util_ratio"], units=[f"n{i}:0" for i in range(5000)], points=20_000)


def test_best_match_comes_first_when_searching(small_cluster: SmallCluster) -> None:
    def search(text: str) -> list[tuple[str, str]]:
        return [(hit.kind.value, hit.key) for hit in small_cluster.queries.search.search(text).hits]

    assert search("ada")[0] == ("user", "ada")
    assert search("n1")[0] == ("node", "n1")
    assert search("3")[0] == ("workload", "slurm:3")
    assert search("TRAIN")[0] == ("workload", "slurm:1")
    assert search("  ") == []
