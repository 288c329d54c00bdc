"""Workloads are found by any form of their id."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters.opened import open_services
from clusters.small import SmallCluster

from clusterscape.errors import NotFoundError
from clusterscape.model import UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.query.search import find_id, qualify, resolve_workload
from clusterscape.settings import StorageSettings
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore


@pytest.fixture
def records(tmp_path: Path) -> Iterator[RecordStore]:
    store = open_record_store(StorageSettings(data_dir=tmp_path))
    numbers = {"3": None, "30": None, "4_0": "5", "4_7": "4", "6+0": "6", "6+1": "7", "9_3": "9"}
    store.write_workloads(
        [
            *(
                Workload(
                    id=WorkloadId(f"slurm:{name}"),
                    state=WorkloadState.COMPLETED,
                    tags={} if number is None else {"job_id": number},
                )
                for name, number in numbers.items()
            ),
            Workload(id=WorkloadId("kubernetes:ml/job/train"), state=WorkloadState.RUNNING, name="job/train"),
        ],
        at_ms=UnixMs(1),
    )
    yield store
    store.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurm:3", "slurm:3"),
        ("3", "slurm:3"),
        (" 3 ", "slurm:3"),
        ("3.0", "slurm:3"),
        ("3.batch", "slurm:3"),
        ("slurm:3.extern", "slurm:3"),
        ("3;cluster", "slurm:3"),
        ("4_7", "slurm:4_7"),
        ("4_7.0", "slurm:4_7"),
        ("6+1", "slurm:6+1"),
        ("6 1", "slurm:6+1"),  # how an address's query delivers 6+1
        ("6+1.0", "slurm:6+1"),
        ("5", "slurm:4_0"),  # its number as a job
        ("7.batch", "slurm:6+1"),
        ("9", "slurm:9_3"),  # the only task that is known
        ("9_[3]", "slurm:9_3"),
        ("ml/job/train", "kubernetes:ml/job/train"),
    ],
)
def test_workload_is_found_when_its_schedulers_id_is_given(records: RecordStore, text: str, expected: str) -> None:
    assert resolve_workload(records, text).id == expected
    assert find_id(records, text) == expected


@pytest.mark.parametrize("text", ["99", "3_1", "slurm:99", "", "train", "3.0.0", "%", "4711_"])
def test_workload_is_not_found_when_no_id_matches(records: RecordStore, text: str) -> None:
    with pytest.raises(NotFoundError, match="no workload") as caught:
        resolve_workload(records, text)
    assert "4711_3" in str(caught.value.hint)
    assert find_id(records, text) == text


def test_tasks_are_named_when_an_array_id_matches_several(records: RecordStore) -> None:
    with pytest.raises(NotFoundError, match="4 matches 2 workloads") as caught:
        resolve_workload(records, "4")
    assert caught.value.hint == "Choose one of them: 4_0, 4_7."
    with pytest.raises(NotFoundError, match="6 matches 2 workloads"):
        resolve_workload(records, "slurm:6")


def test_ids_get_their_prefix_without_a_lookup() -> None:
    named = ["3", "3_7.0", "6+1", "slurm:3", "kubernetes:a/b"]
    assert [qualify(name) for name in named] == ["slurm:3", "slurm:3_7", "slurm:6+1", "slurm:3", "kubernetes:a/b"]


def test_every_query_accepts_the_schedulers_id(small_cluster: SmallCluster) -> None:
    queries = small_cluster.queries
    assert queries.workloads.detail("1.0").workload.workload == "slurm:1"
    assert queries.series.series(metrics=["gpu_util_ratio"], workload="1").height > 0
    assert queries.violations.workload("1").workload == "slurm:1"
    assert queries.queue.story("3").workload == "slurm:3"
    assert open_services(queries).notes.comment(workload="1.batch", author="ada", text="mine").workload == "slurm:1"
    assert [comment.text for comment in queries.rule_notes.comments("1")] == ["mine"]
    assert queries.search.search("1.0").hits[0].key == "slurm:1"
    assert queries.diagnosis.diagnosis("1").workload == "slurm:1"
