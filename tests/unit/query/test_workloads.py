"""Workloads, search, series and explanations of waiting."""

import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model import Reservation, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.query.reasons import _EXPLANATIONS as _REASONS
from clusterscape.query.reasons import WaitKind, classify_pending, explain_pending, explain_waiting


def test_times_run_until_now_when_a_workload_is_active(small_cluster: SmallCluster) -> None:
    running = small_cluster.queries.workloads.detail("slurm:1")
    assert (running.workload.wait_s, running.workload.run_s, running.workload.gpu_hours) == (3600, 3600, 2)
    assert [a.unit for a in running.allocations] == ["n1:0", "n1:1"]
    waiting = small_cluster.queries.workloads.detail("slurm:3").workload
    assert (waiting.wait_s, waiting.run_s, waiting.gpu_hours) == (3600, None, None)
    assert waiting.pending_reason_text == "The limit of its QOS on GPUs for its owner is reached (QOSMaxGRESPerUser)."
    assert waiting.waits_for is WaitKind.LIMIT


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
        ("Resources", "enough GPUs are free"),
        ("ReqNodeNotAvail, UnavailableNodes:gpu-[1-3]", "down, drained or reserved"),
        ("AssocGrpGRES", "limit of its project on GPUs"),
        ("QOSMaxCpuPerUserLimit", "limit of its QOS on CPUs for its owner"),
        ("SomethingNew", "“SomethingNew”"),
    ],
)
def test_reason_becomes_a_sentence_when_explained(reason: str, words: str) -> None:
    assert words in (explain_pending(reason) or "")


@pytest.mark.parametrize(
    ("reason", "facts", "words"),
    [
        ("Dependency", {"dependency": "afterok:12(unfulfilled)"}, "Waits for job 12 to succeed."),
        (
            "Dependency",
            {"dependency": "afterany:12_3(unfulfilled),afternotok:13(unfulfilled)"},
            "Waits for job 12_3 to end and job 13 to fail.",
        ),
        (
            "Dependency",
            {"dependency": "afterany:2(unfulfilled)?afterok:3:4(unfulfilled)"},
            "Waits for job 2 to end or jobs 3, 4 to succeed.",
        ),
        (
            "Dependency",
            {"dependency": "singleton(unfulfilled)"},
            "Waits for other jobs of the same name and user to end.",
        ),
        ("Dependency", {"dependency": "after:12+5(unfulfilled)"}, "Waits for job 12 to start."),
        ("Dependency", {"dependency": "later:{12}"}, "Waits for later:{12}."),
        ("Dependency", {}, "Waits for another workload to end."),
        (
            "DependencyNeverSatisfied",
            {"dependency": "afterok:12(failed)"},
            "Waits for job 12 to succeed. That did not happen; it will never start.",
        ),
        ("Reservation", {"reservation": "course"}, "Waits for its reservation course to begin."),
        ("QOSGrpGRES", {}, "The limit of QOS small on GPUs in total is reached (QOSGrpGRES)."),
        ("AssocMaxJobsLimit", {}, "The limit of project nlp on workloads is reached (AssocMaxJobsLimit)."),
        (
            "ReqNodeNotAvail",
            {"reason_detail": "ReqNodeNotAvail, Reserved for maintenance"},
            "Its nodes are reserved for maintenance (maint), and it would not end before that.",
        ),
        (
            "ReqNodeNotAvail",
            {"reason_detail": "ReqNodeNotAvail, UnavailableNodes:gpu[1-3]"},
            "Needs gpu[1-3], which is down, drained or reserved.",
        ),
        ("Priority", {}, "Other workloads are ahead of it in the queue."),
    ],
)
def test_explanation_names_what_a_workload_waits_for(reason: str, facts: dict[str, str], words: str) -> None:
    waiting = Workload(
        id=WorkloadId("slurm:1"),
        state=WorkloadState.WAITING,
        pending_reason=reason,
        qos="small",
        project="nlp",
        tags=facts,
    )
    maint = Reservation(name="maint", starts_at=UnixMs(1), ends_at=UnixMs(2), nodes=(), is_maintenance=True)
    course = Reservation(name="course", starts_at=UnixMs(1), ends_at=UnixMs(2), nodes=())
    assert explain_waiting(waiting, [maint, course]) == words


def test_only_held_workloads_are_classified_as_held() -> None:
    assert {reason for reason in _REASONS if classify_pending(reason) is WaitKind.HELD} == {
        "JobHeldUser",
        "JobHeldAdmin",
    }
    assert [
        classify_pending(reason) for reason in (None, "Priority", "Dependency", "BeginTime", "QOSGrpGRES", "Odd")
    ] == [
        WaitKind.ROOM,
        WaitKind.ROOM,
        WaitKind.DEPENDENCY,
        WaitKind.BEGIN_TIME,
        WaitKind.LIMIT,
        WaitKind.OTHER,
    ]


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


def test_error_names_what_is_missing_when_a_series_request_is_wrong(small_cluster: SmallCluster) -> None:
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
