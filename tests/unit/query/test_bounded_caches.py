"""Caches and tables that requests fill stay bounded for any requests."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clusters.small import NOW, SmallCluster

from clusterscape.errors import NotFoundError
from clusterscape.model import Workload, WorkloadId, WorkloadState
from clusterscape.model.traces import TraceAbout, TraceState
from clusterscape.query.cache import SameObjects, VersionedCache
from clusterscape.query.redaction.pseudonyms import Pseudonyms, WorkloadCodes
from clusterscape.query.traces.opened import OpenTraces
from clusterscape.services.site_secret import ensure_secret
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts import FolderArtifactStore
from clusterscape.store.artifacts.traces import write_about


def fail() -> int:
    raise NotFoundError("no such node")


def workload_codes(cluster: SmallCluster, most: int) -> WorkloadCodes:
    ensure_secret(cluster.records, lambda: NOW)
    return WorkloadCodes(Pseudonyms(cluster.records, lambda: NOW), cluster.records, lambda: NOW, most=most)


def test_no_lock_stays_when_answers_of_many_keys_fail() -> None:
    cache = VersionedCache(4)
    for key in range(1000):
        with pytest.raises(NotFoundError):
            cache.get(key, 1, fail)
    assert cache.locks == 0


def test_answer_is_made_once_when_many_threads_ask_while_others_evict_it() -> None:
    cache, begun = VersionedCache(1), threading.Barrier(8)
    created: list[int] = []

    def make() -> int:
        created.append(1)
        return len(created)

    def ask(_: int) -> int:
        begun.wait()
        return cache.get("key", 1, make)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {1}
    cache.get("other", 1, lambda: 0)
    assert (cache.get("key", 1, lambda: 7), cache.locks) == (7, 0)


def test_heavy_values_leave_first_by_use_when_all_together_weigh_too_much() -> None:
    cache = VersionedCache(4, max_weight=10)

    def is_kept(key: str) -> bool:
        return cache.get(key, 1, lambda: "made again", weight=0) == "kept"

    for key, weight in (("a", 4), ("b", 4), ("c", 2)):
        cache.get(key, 1, lambda: "kept", weight=weight)
    assert is_kept("a")
    cache.get("d", 1, lambda: "kept", weight=3)
    assert [is_kept(key) for key in ("a", "c", "d")] == [True, True, True]
    assert not is_kept("b")
    cache.get("larger than all", 1, lambda: "kept", weight=100)
    assert is_kept("larger than all")
    assert not is_kept("d")


def test_large_traces_are_closed_when_open_ones_have_too_many_spans(tmp_path: Path) -> None:
    artifacts = FolderArtifactStore(tmp_path)
    for name, spans in (("a", 60), ("b", 60), ("c", 30)):
        about = TraceAbout(trace_id=name, name=name, imported_at=NOW, state=TraceState.READY, spans=spans)
        write_about(artifacts, about)
    traces = OpenTraces(artifacts, UploadLimits(open_spans=100))
    first = traces.find("a")
    assert traces.find("a") is first
    second = traces.find("b")
    assert traces.find("c") is traces.find("c")
    assert traces.find("b") is second
    assert traces.find("a") is not first


def test_no_lock_stays_when_threads_wait_for_an_answer_that_fails() -> None:
    cache, begun = VersionedCache(4), threading.Barrier(8)

    def ask(_: int) -> str:
        begun.wait()
        with pytest.raises(NotFoundError):
            cache.get("key", 1, fail)
        return "failed"

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {"failed"}
    assert cache.locks == 0
    assert cache.get("key", 1, lambda: 3) == 3


def test_lists_are_the_same_version_when_they_are_the_same_objects() -> None:
    cache, nodes, units = VersionedCache(4), [1], [2]
    assert cache.get("key", SameObjects(nodes, units), lambda: 1) == 1
    assert cache.get("key", SameObjects(nodes, units), lambda: 2) == 1
    assert cache.get("key", SameObjects(nodes, [2]), lambda: 3) == 3
    assert cache.get("key", SameObjects(nodes), lambda: 4) == 4
    assert SameObjects(nodes) != nodes


def test_workload_codes_stay_bounded_when_texts_name_ever_more(small_cluster: SmallCluster) -> None:
    ids = workload_codes(small_cluster, most=50)
    for number in range(500):
        ids.hide_in(f"there is no workload kubernetes:team/job-{number}")
    assert len(ids) == 50


def test_code_is_revealed_when_its_id_was_evicted_and_the_store_has_more_than_are_kept(
    small_cluster: SmallCluster,
) -> None:
    names = [f"kubernetes:team/job-{number}" for number in range(40)]
    small_cluster.records.write_workloads(
        [Workload(id=WorkloadId(name), state=WorkloadState.RUNNING, gpus_requested=1) for name in names], at_ms=NOW
    )
    code = workload_codes(small_cluster, most=8).hide(names[0])
    ids = workload_codes(small_cluster, most=8)
    assert ids.reveal_in(code) == names[0]
    assert len(ids) == 8


def test_workload_codes_stay_whole_when_threads_hide_at_the_same_time(small_cluster: SmallCluster) -> None:
    ids = workload_codes(small_cluster, most=20)

    def hide(worker: int) -> None:
        for number in range(300):
            name = f"kubernetes:team/job-{worker}-{number}"
            assert ids.hide(name).startswith("kubernetes:~")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(hide, range(6)))
    assert len(ids) == 20
