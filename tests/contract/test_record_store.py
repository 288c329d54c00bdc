"""Contract of record stores, against SQLite (plain and mirrored) and a real PostgreSQL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from contract.record_samples import (
    FULL_ALLOCATION,
    FULL_NODE,
    FULL_PARTITION,
    FULL_STATUS,
    FULL_UNIT,
    FULL_WORKLOAD,
    T0,
    allocation,
    at,
    ids,
    job,
)
from servers.postgres import PostgresServer, postgres_server

from clusterscape.errors import StoreError
from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeState,
    NodeStateChange,
    Partition,
    SourceStatus,
    Unit,
    UnitId,
    UnitKind,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadKind,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.model.job_summaries import JobSummary, SummarySource, summarize
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage
from clusterscape.model.rules import Violation
from clusterscape.model.runs import (
    RunAbout,
    RunDetail,
    RunEnd,
    RunEnergy,
    RunFigures,
    RunFile,
    RunInstance,
    RunListener,
    RunMark,
    RunMoments,
    RunRecord,
    RunSummary,
    SeriesFigures,
    StepFigures,
    StoredRun,
)
from clusterscape.settings import StorageSettings
from clusterscape.store.records import RecordStore, WorkloadFilter, open_record_store
from clusterscape.store.records.contract import RunList
from clusterscape.store.records.mirror import MirroredRecordStore


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "sqlite mirrored", pytest.param("postgresql", marks=pytest.mark.server)])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], RecordStore]]:
    """Opens the same, at first empty, store again and again."""
    is_postgres = request.param == "postgresql"
    records = request.getfixturevalue("postgres").new_database() if is_postgres else "sqlite"
    storage = StorageSettings(data_dir=tmp_path / "data", records=records)
    opened: list[RecordStore] = []

    def open_() -> RecordStore:
        store = open_record_store(storage)
        opened.append(MirroredRecordStore(store) if request.param == "sqlite mirrored" else store)
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


several_writers = pytest.mark.parametrize(
    "open_store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.server)], indirect=True
)
"""A mirror is right only where its process is the one writer."""


@pytest.fixture
def store(open_store: Callable[[], RecordStore]) -> RecordStore:
    return open_store()


def test_every_field_comes_back_when_the_store_is_opened_again(open_store: Callable[[], RecordStore]) -> None:
    first = open_store()
    first.write_inventory(nodes=[FULL_NODE], partitions=[FULL_PARTITION], units=[FULL_UNIT], at_ms=T0)
    first.write_workloads([FULL_WORKLOAD], at_ms=T0)
    first.write_allocations([FULL_ALLOCATION])
    first.write_sources([FULL_STATUS])
    first.close()
    again = open_store()
    assert again.nodes() == [FULL_NODE]
    assert again.partitions() == [FULL_PARTITION]
    assert again.units() == [FULL_UNIT]
    assert again.workload(FULL_WORKLOAD.id) == FULL_WORKLOAD
    assert again.allocations() == [FULL_ALLOCATION]
    assert again.sources() == [FULL_STATUS]


def test_missing_fields_stay_missing_when_records_hold_only_required_ones(store: RecordStore) -> None:
    node, unit = Node(id=NodeId("n1")), Unit(id=UnitId("n1:0"), node=NodeId("n1"), index=0)
    workload = Workload(id=WorkloadId("slurm:1"), state=WorkloadState.UNKNOWN)
    status = SourceStatus(source="slurm", kind="slurm", is_ok=True, at=T0)
    store.write_inventory(nodes=[node], partitions=[Partition(name="p")], units=[unit], at_ms=T0)
    store.write_workloads([workload], at_ms=T0)
    store.write_sources([status])
    assert store.nodes() == [node]
    assert store.partitions() == [Partition(name="p")]
    assert store.units() == [unit]
    assert store.workload(workload.id) == workload
    assert store.sources() == [status]
    assert store.workload(WorkloadId("slurm:2")) is None


def test_everything_is_empty_when_nothing_was_written(store: RecordStore) -> None:
    store.write_inventory(nodes=[], partitions=[], units=[], at_ms=T0)
    store.write_workloads([], at_ms=T0)
    store.write_allocations([])
    store.write_sources([])
    store.remove_nodes([])
    lists = [store.nodes(), store.partitions(), store.units(), store.active_workloads(), store.sources()]
    assert lists == [[], [], [], [], []]
    assert store.open_allocations() == store.allocations() == []
    page = store.workloads(WorkloadFilter(), limit=7, offset=2)
    assert (page.workloads, page.total, page.limit, page.offset) == ([], 0, 7, 2)
    assert store.remove_ended_before(T0) == 0


def test_inventory_is_ordered_bytewise_and_by_index_when_names_mix_cases(store: RecordStore) -> None:
    names = ["a", "B", "b10", "b9", "ä", "Z-1", "Z1"]
    units = [
        Unit(id=gpu_unit_id(NodeId(name), index), node=NodeId(name), index=index)
        for name in names
        for index in (10, 9, 0)
    ]
    store.write_inventory(
        nodes=[Node(id=NodeId(name)) for name in names],
        partitions=[Partition(name=name) for name in names],
        units=units,
        at_ms=T0,
    )
    assert [node.id for node in store.nodes()] == sorted(names)
    assert [partition.name for partition in store.partitions()] == sorted(names)
    assert [(unit.node, unit.index) for unit in store.units()] == [(n, i) for n in sorted(names) for i in (0, 9, 10)]


def test_the_last_write_wins_when_a_record_is_written_again(store: RecordStore) -> None:
    for state in (NodeState.IDLE, NodeState.DOWN):
        store.write_inventory(nodes=[Node(id=NodeId("n1"), state=state)], partitions=[], units=[], at_ms=T0)
    store.write_workloads([job(1, WorkloadState.WAITING), job(1, WorkloadState.RUNNING)], at_ms=T0)
    assert [node.state for node in store.nodes()] == [NodeState.DOWN]
    assert [workload.state for workload in store.active_workloads()] == [WorkloadState.RUNNING]
    store.write_workloads([job(1, WorkloadState.COMPLETED)], at_ms=T0)
    assert store.active_workloads() == []


def test_only_changes_differ_when_a_large_inventory_is_written_again(store: RecordStore) -> None:
    nodes = [Node(id=NodeId(f"n{i:03}"), gpu_count=8) for i in range(200)]
    units = [Unit(id=gpu_unit_id(node.id, i), node=node.id, index=i) for node in nodes for i in range(8)]
    store.write_inventory(nodes=nodes, partitions=[], units=units, at_ms=T0)
    nodes[5] = replace(nodes[5], state=NodeState.DOWN, reason="fan")
    units[77] = replace(units[77], power_limit_watts=300.5)
    store.write_inventory(nodes=nodes, partitions=[], units=units, at_ms=UnixMs(T0 + 15_000))
    assert store.nodes() == nodes
    assert store.units() == units


def test_many_workloads_follow_their_changes_when_written_every_round(store: RecordStore) -> None:
    jobs = [job(i, WorkloadState.WAITING) for i in range(300)]
    store.write_workloads(jobs, at_ms=T0)
    jobs = [
        replace(workload, state=WorkloadState.RUNNING, nodes=(f"n{i % 7}",)) if i % 2 else workload
        for i, workload in enumerate(jobs)
    ]
    store.write_workloads(jobs, at_ms=UnixMs(T0 + 15_000))
    jobs[1] = replace(jobs[1], state=WorkloadState.FAILED, exit_code=1)
    store.write_workloads(jobs, at_ms=UnixMs(T0 + 30_000))
    store.write_workloads(jobs, at_ms=UnixMs(T0 + 45_000))
    assert sorted(store.active_workloads(), key=lambda w: w.submitted_at or 0) == [jobs[0], *jobs[2:]]
    assert store.workload(jobs[1].id) == jobs[1]
    assert store.workloads(WorkloadFilter(node=NodeId("n1"))).total == len([w for w in jobs if w.nodes == ("n1",)])


def test_units_go_and_history_stays_when_nodes_are_removed(store: RecordStore) -> None:
    nodes = [Node(id=NodeId(name)) for name in ("n1", "n2")]
    units = [Unit(id=gpu_unit_id(node.id, 0), node=node.id, index=0) for node in nodes]
    store.write_inventory(nodes=nodes, partitions=[Partition(name="p"), Partition(name="q")], units=units, at_ms=T0)
    store.write_workloads([job(1)], at_ms=T0)
    store.write_allocations([Allocation(workload=WorkloadId("slurm:1"), unit=units[0].id, from_at=T0)])
    store.remove_nodes([NodeId("n1"), NodeId("unknown")])
    store.remove_partitions(["q"])
    assert [node.id for node in store.nodes()] == ["n2"]
    assert [unit.id for unit in store.units()] == ["n2:0"]
    assert [partition.name for partition in store.partitions()] == ["p"]
    assert len(store.open_allocations()) == len(store.active_workloads()) == 1
    store.remove_units([UnitId("n2:0")])
    assert store.units() == []


def test_requested_units_are_not_listed_when_written(store: RecordStore) -> None:
    requested = Unit(id=UnitId("slurm:1#0"), kind=UnitKind.REQUESTED, workload=WorkloadId("slurm:1"))
    store.write_inventory(nodes=[], partitions=[], units=[requested, FULL_UNIT], at_ms=T0)
    assert store.units() == [FULL_UNIT]


def test_workloads_come_newest_first_in_pages_when_there_are_many(store: RecordStore) -> None:
    store.write_workloads([job(i) for i in (3, 1, 2, 5, 4)], at_ms=T0)
    page = store.workloads(WorkloadFilter(), limit=2, offset=1)
    assert ids(page.workloads) == ["slurm:4", "slurm:3"]
    assert page.total == 5
    assert ids(store.workloads(WorkloadFilter(), limit=2, offset=4).workloads) == ["slurm:1"]


FILTERED = (
    job(1, WorkloadState.COMPLETED, user="ann", project="nlp", partition="a100", nodes=("n1", "n2"), ended_at=at(2)),
    job(2, WorkloadState.RUNNING, user="bob", project="nlp", partition="v100", nodes=("n2",), name="train_100%"),
    job(3, WorkloadState.WAITING, user="ann", project="Vision", partition="a100", experiment="ÄRGER"),
    job(4, WorkloadState.CANCELLED, user="Bobby", project=None, partition="a100", ended_at=at(4)),
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (WorkloadFilter(), [4, 3, 2, 1]),
        (WorkloadFilter(states=frozenset({WorkloadState.WAITING, WorkloadState.RUNNING})), [3, 2]),
        (WorkloadFilter(states=frozenset()), []),
        (WorkloadFilter(user="ann"), [3, 1]),
        (WorkloadFilter(project="nlp"), [2, 1]),
        (WorkloadFilter(partition="a100", user="ann", states=frozenset({WorkloadState.COMPLETED})), [1]),
        (WorkloadFilter(node=NodeId("n2")), [2, 1]),
        (WorkloadFilter(node=NodeId("n9")), []),
        (WorkloadFilter(text="BOB"), [4, 2]),
        (WorkloadFilter(text="slurm:3"), [3]),
        (WorkloadFilter(text="vis"), [3]),
        (WorkloadFilter(text="ärger"), [3]),
        (WorkloadFilter(text="n_1"), [2]),  # "train_100%" and neither "nlp" nor anything else by wildcard
        (WorkloadFilter(text="0%"), [2]),
        (WorkloadFilter(text="%"), [2]),
        (WorkloadFilter(text="  "), [4, 3, 2, 1]),
        (WorkloadFilter(text="annnlp"), []),  # fields are not glued together
        (WorkloadFilter(active_between=(at(1.5), at(1.6))), [1]),
        (WorkloadFilter(active_between=(at(2), at(3))), [2]),  # 1 ended at 2: [begin, end)
        (WorkloadFilter(active_between=(at(4), at(4.1))), [4, 3, 2]),  # 4 was cancelled the moment it was submitted
        (WorkloadFilter(active_between=(at(100), at(101))), [3, 2]),
        (WorkloadFilter(active_between=(at(-2), at(-1))), []),
    ],
)
def test_only_matching_workloads_are_found_when_filtered(
    store: RecordStore, where: WorkloadFilter, expected: list[int]
) -> None:
    store.write_workloads(FILTERED, at_ms=T0)
    page = store.workloads(where)
    assert ids(page.workloads) == [f"slurm:{number}" for number in expected]
    assert page.total == len(expected)


def test_the_node_filter_follows_when_a_workload_moves(store: RecordStore) -> None:
    store.write_workloads([job(1, nodes=("n1", "n2", "n1"))], at_ms=T0)
    store.write_workloads([job(1, nodes=("n3",))], at_ms=T0)
    assert store.workloads(WorkloadFilter(node=NodeId("n1"))).total == 0
    assert store.workloads(WorkloadFilter(node=NodeId("n3"))).total == 1


def test_an_allocation_closes_when_written_with_its_end(store: RecordStore) -> None:
    store.write_allocations([allocation(1, "n1:0", 0), allocation(1, "n1:1", 0)])
    store.write_allocations([allocation(1, "n1:0", 0, 2)])
    assert store.open_allocations() == [allocation(1, "n1:1", 0)]
    assert store.allocations(unit=UnitId("n1:0")) == [allocation(1, "n1:0", 0, 2)]


def test_a_unit_may_be_held_again_when_its_first_hold_ended(store: RecordStore) -> None:
    held = [allocation(1, "n1:0", 0, 1), allocation(2, "n1:0", 1, 2), allocation(1, "n1:0", 3)]
    store.write_allocations(reversed(held))
    assert store.allocations(unit=UnitId("n1:0")) == held


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, [1, 2, 3]),
        (0, 1, [1]),
        (1, 2, [2]),  # [from, to): the first ended at 1
        (1.5, 4.5, [2, 3]),
        (10, None, [3]),
        (None, 1, [1]),
        (None, 0, []),
    ],
)
def test_only_overlapping_allocations_are_found_when_a_range_is_given(
    store: RecordStore, start: float | None, end: float | None, expected: list[int]
) -> None:
    store.write_allocations([allocation(1, "n1:0", 0, 1), allocation(2, "n1:0", 1, 2), allocation(3, "n1:1", 4)])
    allocations = store.allocations(
        start_ms=None if start is None else at(start), end_ms=None if end is None else at(end)
    )
    assert [row.workload for row in allocations] == [f"slurm:{number}" for number in expected]


def test_many_open_allocations_close_when_a_round_ends_them(store: RecordStore) -> None:
    held = [allocation(i, f"n{i}:0", 0) for i in range(200)]
    store.write_allocations(held)
    held = [replace(kept, to_at=at(1)) if i < 150 else kept for i, kept in enumerate(held)]
    store.write_allocations(held)
    store.write_allocations(held)
    assert len(store.open_allocations()) == 50
    assert len(store.allocations()) == 200


def test_old_workloads_go_with_their_allocations_when_removed_by_age(store: RecordStore) -> None:
    store.write_workloads(
        [
            job(1, WorkloadState.COMPLETED, ended_at=at(2), nodes=("n1",)),
            job(2, WorkloadState.FAILED, ended_at=at(20)),
            job(3, WorkloadState.RUNNING),
            job(4, WorkloadState.UNKNOWN),  # its end is not known: counts from when it was written
        ],
        at_ms=at(5),
    )
    store.write_allocations(
        [
            allocation(1, "n1:0", 1, 2),
            allocation(2, "n1:0", 3, 20),
            allocation(3, "n1:1", 3),
            allocation(99, "n1:2", 0, 1),
        ]
    )
    assert store.remove_ended_before(at(10)) == 2
    assert ids(store.workloads(WorkloadFilter()).workloads) == ["slurm:3", "slurm:2"]
    assert [kept.workload for kept in store.allocations()] == ["slurm:2", "slurm:3"]
    assert store.workloads(WorkloadFilter(node=NodeId("n1"))).total == 0
    assert store.remove_ended_before(at(10)) == 0


def test_a_source_keeps_only_its_last_state_when_it_recovers(store: RecordStore) -> None:
    well = SourceStatus(source=FULL_STATUS.source, kind="dcgm", is_ok=True, at=at(2))
    store.write_sources([FULL_STATUS])
    store.write_sources([FULL_STATUS, well])
    assert store.sources() == [well]


def tracked(run: str, user: str | None = "ada", samples: int = 0) -> StoredRun:
    figures = RunFigures(energy=RunEnergy(joules=7.5, scope="process", method="measured"), results={"loss": 0.5})
    summary = RunSummary(
        about=RunAbout(name="Größe “1”", command=["python", "a.py"], mig=[RunInstance(gpu=0, instance=1)]),
        params={"lr": "0.1"},
        moments=RunMoments(running=T0),
        end=RunEnd(state="completed", exit_code=2**40),
        samples=samples,
        figures=figures,
    )
    detail = RunDetail(
        series={f"run:{run} loss": SeriesFigures("run", "measured", 2, 1.5, 0.5, 1.0, 1.0, 0.5, T0, T0 + 1)},
        steps=StepFigures(0, 1, T0, T0 + 1),
        marks=[RunMark(kind="epoch", name="0", at=T0)],
        listeners={"nvml": RunListener(listener="nvml", ticks=3)},
        environment={"git": {"commit": "abc"}, "cpu_count": 8},
        exceptions=[None, "boom"],
        holds={},
        files={"tracker.spool": RunFile(offset=99, rank=1, series={0: ("loss", f"run:{run}")})},
    )
    record = RunRecord(run=run, owned_by=user, received_at=T0, bytes=2**40, series_count=1, summary=summary)
    return StoredRun(record=record, detail=detail)


def test_runs_come_back_with_every_field_when_the_store_is_opened_again(open_store: Callable[[], RecordStore]) -> None:
    first, run = open_store(), tracked("r1")
    first.write_run(run, at_ms=T0)
    assert [*first.runs().records] == [run.record]
    first.close()
    again = open_store()
    assert again.run("r1") == run
    assert again.run_record("r1") == run.record
    assert (again.run("r2"), again.run_record("r2")) == (None, None)
    assert (again.runs().total, run.record.written_at, run.damage) == (1, T0, None)


def test_only_newer_writes_are_listed_when_runs_are_asked_for_after_a_revision(store: RecordStore) -> None:
    assert store.runs() == RunList(records=[], revision=0, total=0)
    revisions = [store.write_run(tracked(run), at_ms=T0) for run in ("a", "b", "c")]
    assert revisions == [1, 2, 3]
    store.write_run(tracked("a", samples=5), at_ms=at(1))
    news = store.runs(after=3)
    assert [(record.run, record.summary.samples, record.written_at) for record in news.records] == [("a", 5, at(1))]
    assert (news.revision, news.total) == (4, 3)
    assert store.runs(after=4).records == []
    assert store.remove_run("a") is True
    assert store.remove_run("a") is False
    assert {record.run for record in store.runs().records} == {"b", "c"}
    assert store.write_run(tracked("d"), at_ms=T0) == 5, "a revision is never given twice"


@several_writers
def test_runs_of_other_writers_are_listed_when_a_mirror_is_refreshed(open_store: Callable[[], RecordStore]) -> None:
    other, mirror = open_store(), MirroredRecordStore(open_store())
    for run in ("a", "b", "c"):
        other.write_run(tracked(run), at_ms=T0)
    listed = mirror.runs()
    assert mirror.runs() is listed
    kept = {record.run: record for record in listed.records}
    other.write_run(tracked("d"), at_ms=T0)
    mirror.write_run(tracked("a", samples=5), at_ms=T0)  # before what the other wrote was read
    assert {record.run for record in mirror.runs().records} == {"a", "b", "c"}
    mirror.refresh_runs()
    now = {record.run: record for record in mirror.runs().records}
    assert now.keys() == {"a", "b", "c", "d"}
    assert (now["a"].summary.samples, now["b"] is kept["b"]) == (5, True)
    other.remove_run("d")
    other.write_run(tracked("e"), at_ms=T0)  # as many as before
    mirror.refresh_runs()
    assert {record.run for record in mirror.runs().records} == {"a", "b", "c", "e"}
    mirror.remove_run("e")
    assert {record.run for record in mirror.runs().records} == {"a", "b", "c"}


def test_documents_keep_their_bodies_and_order_when_replaced_and_removed(store: RecordStore) -> None:
    body = {"z": 1, "a": [1.5, None, {"deep": "ünï"}], "flag": True}
    store.write_document("view", "b", {"old": 1}, at_ms=T0)
    store.write_document("view", "b", body, at_ms=at(1))
    store.write_document("view", "B", {}, at_ms=T0)
    store.write_document("rule", "b", {"other": 2}, at_ms=T0)
    written = store.document("view", "b")
    assert written is not None
    assert (written.kind, written.key, written.body, written.written_at) == ("view", "b", body, at(1))
    assert list(written.body) == ["z", "a", "flag"]
    assert [document.key for document in store.documents("view")] == ["B", "b"]
    assert store.remove_document("view", "b") is True
    assert store.remove_document("view", "b") is False
    assert store.document("view", "b") is None
    assert [document.body for document in store.documents("rule")] == [{"other": 2}]


def test_odd_text_is_kept_as_far_as_possible_when_sources_send_it(store: RecordStore) -> None:
    odd = job(1, name="a\0b\udc80c", user="'; DROP TABLE workloads; --", tags={"k\udc80": "\0v\udcff", "emoji": "🚀"})
    store.write_workloads([odd], at_ms=T0)
    workload = store.workload(odd.id)
    assert workload is not None
    assert workload.name == "ab?c"
    assert workload.user == odd.user
    assert workload.tags["emoji"] == "🚀"
    assert store.workloads(WorkloadFilter(text="drop TABLE")).total == 1


def test_write_is_rolled_back_when_part_of_it_fails(store: RecordStore) -> None:
    store.write_workloads([job(1)], at_ms=T0)
    with pytest.raises(StoreError, match="cannot be stored") as caught:
        store.write_workloads([job(2), job(3, priority=2**64)], at_ms=T0)
    assert caught.value.hint is not None
    assert ids(store.workloads(WorkloadFilter()).workloads) == ["slurm:1"]
    store.write_workloads([job(4)], at_ms=T0)  # and writing goes on


def test_readers_see_whole_writes_when_threads_read_and_write(store: RecordStore) -> None:
    def write(thread: int) -> None:
        for turn in range(5):
            base = (thread * 5 + turn) * 100
            store.write_workloads([job(base + i) for i in range(100)], at_ms=T0)

    def read(_: int) -> list[int]:
        return [len(store.active_workloads()) for _ in range(20)]

    with ThreadPoolExecutor(6) as pool:
        writers = [pool.submit(write, thread) for thread in range(3)]
        counts = [count for reader in [pool.submit(read, i) for i in range(3)] for count in reader.result()]
        for writer in writers:
            writer.result()
    assert all(count % 100 == 0 for count in counts)
    assert len(store.active_workloads()) == 1500


@several_writers
def test_writes_are_visible_to_another_store_when_both_are_open(open_store: Callable[[], RecordStore]) -> None:
    first, second = open_store(), open_store()
    jobs = [job(i) for i in range(100)]
    first.write_workloads(jobs, at_ms=T0)
    second.write_workloads([replace(jobs[0], priority=5)], at_ms=T0)
    first.write_workloads(jobs, at_ms=T0)  # the other one's change is seen and undone
    assert sorted(ids(second.active_workloads())) == sorted(ids(jobs))
    assert second.workload(jobs[0].id) == jobs[0]


@several_writers
def test_one_schema_results_when_several_open_an_empty_store_at_once(open_store: Callable[[], RecordStore]) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(), range(4)))
    stores[0].write_workloads([job(1)], at_ms=T0)
    assert all(ids(store.active_workloads()) == ["slurm:1"] for store in stores)


def test_sources_are_forgotten_when_they_are_removed(store: RecordStore) -> None:
    other = replace(FULL_STATUS, source="other")
    store.write_sources([FULL_STATUS, other])
    store.remove_sources([FULL_STATUS.source, "never seen"])
    assert store.sources() == [other]


def test_spans_not_ended_before_a_time_are_columns_when_history_is_read(store: RecordStore) -> None:
    store.write_workloads(
        [
            job(1, WorkloadState.COMPLETED, started_at=at(2), ended_at=at(3), gpus_requested=4),
            job(4, WorkloadState.CANCELLED, ended_at=at(5)),
            job(6, WorkloadState.RUNNING, started_at=at(7), gpus_requested=2, resource_type="V100-2"),
            Workload(id=WorkloadId("slurm:9"), state=WorkloadState.UNKNOWN),
        ],
        at_ms=at(8),
    )
    spans = store.workload_spans(since_ms=at(3))
    assert spans.sort("workload").rows() == [
        ("slurm:4", "cancelled", at(4), None, at(5), 0, None),
        ("slurm:6", "running", at(6), at(7), None, 2, "V100-2"),
        ("slurm:9", "unknown", at(8), None, at(8) + 1, 0, None),
    ]
    store.write_allocations([allocation(1, "n:0", 2, 3), allocation(6, "n:0", 7), allocation(6, "n:1", 9)])
    held = store.allocation_spans(start_ms=at(3), end_ms=at(9))
    assert held.rows() == [("slurm:6", "n:0", at(7), None)]
    assert held.schema == store.allocation_spans(start_ms=at(0), end_ms=at(1)).schema
    assert spans.columns == [
        "workload",
        "state",
        "begins_at",
        "started_at",
        "ends_at",
        "gpus_requested",
        "resource_type",
    ]


def test_every_execution_is_a_row_when_the_whole_history_is_read(store: RecordStore) -> None:
    empty = store.workload_history()
    bare = Workload(id=WorkloadId("slurm:9"), state=WorkloadState.UNKNOWN)
    store.write_workloads([FULL_WORKLOAD, bare], at_ms=at(8))
    history = store.workload_history()
    assert history.schema == empty.schema
    newest = {row["id"]: row for row in history.filter(pl.col("state") != "preempted").iter_rows(named=True)}
    for workload in (FULL_WORKLOAD, bare):
        row = newest[workload.id]
        assert row == {name: getattr(workload, name) for name in row}
    (former,) = history.filter(pl.col("state") == "preempted").to_dicts()
    (execution,) = FULL_WORKLOAD.earlier
    named = ("submitted_at", "started_at", "ended_at", "suspended_s")
    assert former == newest[FULL_WORKLOAD.id] | {
        "state": "preempted",
        "gpus_allocated": execution.gpus,
        **{name: getattr(execution, name) for name in named},
    }


def test_executions_of_a_period_are_rows_with_all_executions_of_each_workload(store: RecordStore) -> None:
    waiting = replace(job(1), state=WorkloadState.WAITING, started_at=at(5), resource_type=None, nodes=("n7",))
    store.write_workloads([FULL_WORKLOAD, waiting, replace(job(2), kind=WorkloadKind.RUN)], at_ms=at(8))
    (table,) = store.iter_executions(start_ms=UnixMs(0), end_ms=at(10**6))
    rows = {(row["id"], row["is_last"]): row for row in table.iter_rows(named=True)}
    assert len(rows) == table.height == 3
    former, latest = rows[FULL_WORKLOAD.id, False], rows[FULL_WORKLOAD.id, True]
    assert all(former[name] == getattr(FULL_WORKLOAD.earlier[0], name) for name in ("started_at", "ended_at", "gpus"))
    assert (former["is_first"], latest["is_first"], latest["gpus"]) == (True, False, FULL_WORKLOAD.gpus_held)
    for name in ("user", "qos", "resource_type", "cpus", "submitted_at", "eligible_at", "suspended_s", "suspended_at"):
        assert latest[name] == getattr(FULL_WORKLOAD, name), name
    queued = rows[waiting.id, True]  # its start is only expected
    assert (queued["started_at"], queued["first_node"], queued["is_active"]) == (None, "n7", True)
    assert list(store.iter_executions(start_ms=UnixMs(0), end_ms=UnixMs(1))) == []


def test_workloads_are_found_by_id_when_many_are_asked_for(store: RecordStore) -> None:
    store.write_workloads([FULL_WORKLOAD, job(1), job(2)], at_ms=at(0))
    unknown = [WorkloadId(f"slurm:{number}") for number in range(1000, 2500)]
    workloads = store.find_workloads([*unknown, FULL_WORKLOAD.id, job(2).id])
    assert sorted(workloads, key=lambda workload: workload.id) == sorted(
        [FULL_WORKLOAD, job(2)], key=lambda workload: workload.id
    )
    assert store.find_workloads([]) == []


def test_violations_are_kept_as_past_when_they_end(open_store: Callable[[], RecordStore]) -> None:
    store = open_store()
    idle = Violation(rule="idle", workload=FULL_WORKLOAD.id, unit=UnitId("n1:0"), since=T0, values={"util p5": 0.04})
    whole = Violation(rule="uneven", workload=FULL_WORKLOAD.id, unit=None, since=at(60), gpus=8)
    store.write_workloads([FULL_WORKLOAD], at_ms=T0)
    store.write_violations([idle, whole])
    assert sorted(store.open_violations(), key=lambda violation: violation.rule) == [idle, whole]
    ended = replace(idle, until=at(120))
    store.write_violations([ended])
    assert store.open_violations() == [whole]
    store.close()
    again = open_store()
    assert again.violations() == [ended, whole]
    assert again.violations(rule="idle", workload=FULL_WORKLOAD.id) == [ended]
    assert again.violations(start_ms=at(120)) == [whole]
    assert again.violations(end_ms=at(60)) == [ended]
    spans = again.violation_spans(start_ms=T0, end_ms=at(600)).sort("rule")
    assert spans["unit"].to_list() == ["n1:0", None]
    assert spans["until"].to_list() == [at(120), None]
    assert again.remove_violations("idle") == 1
    assert again.violations() == [whole]
    assert again.remove_violations("uneven") == 1
    assert again.open_violations() == []


def test_violations_of_one_rule_are_replaced_when_it_judges_differently(open_store: Callable[[], RecordStore]) -> None:
    store = open_store()
    old = [
        Violation(rule="idle", workload=FULL_WORKLOAD.id, unit=UnitId("n1:0"), since=T0),
        Violation(rule="idle", workload=FULL_WORKLOAD.id, unit=UnitId("n1:1"), since=T0, until=at(60)),
    ]
    other = Violation(rule="uneven", workload=FULL_WORKLOAD.id, unit=None, since=T0, gpus=8)
    store.write_violations([*old, other])
    new = [
        Violation(rule="idle", workload=FULL_WORKLOAD.id, unit=UnitId("n1:0"), since=at(30), values={"util p5": 0.1}),
        Violation(rule="idle", workload=FULL_WORKLOAD.id, unit=UnitId("n1:2"), since=T0, until=at(90)),
    ]
    store.replace_violations("idle", new)
    again = open_store()
    for reader in (store, again):
        assert sorted(reader.open_violations(), key=lambda violation: violation.rule) == [new[0], other]
        assert reader.violations(rule="idle") == [new[1], new[0]]
    store.replace_violations("idle", [])
    assert store.violations() == [other]


def test_violations_go_with_their_workload_when_it_is_removed_by_age(store: RecordStore) -> None:
    ended = replace(FULL_WORKLOAD, state=WorkloadState.COMPLETED, ended_at=at(60))
    store.write_workloads([ended], at_ms=T0)
    store.write_violations([Violation(rule="idle", workload=ended.id, unit=None, since=T0)])
    assert store.remove_ended_before(at(3600)) == 1
    assert store.violations() == []
    assert store.open_violations() == []


def test_allocations_and_violations_go_with_a_workload_when_it_is_removed(store: RecordStore) -> None:
    removed = Workload(id=WorkloadId("run:one"), state=WorkloadState.RUNNING)
    other = replace(removed, id=WorkloadId("run:other"))
    store.write_workloads([removed, other], at_ms=T0)
    for workload in (removed, other):
        store.write_allocations([Allocation(workload=workload.id, unit=UnitId("n1:0"), from_at=T0)])
        store.write_violations([Violation(rule="idle", workload=workload.id, unit=UnitId("n1:0"), since=T0)])
    store.remove_workload(removed.id)
    store.remove_workload(WorkloadId("run:none"))
    assert store.workload(removed.id) is None
    assert [held.workload for held in store.allocations()] == [other.id]
    assert [held.workload for held in store.open_allocations()] == [other.id]
    assert [broken.workload for broken in store.violations()] == [other.id]
    assert [workload.id for workload in store.active_workloads()] == [other.id]


def test_past_node_states_are_returned_when_a_past_time_is_given(
    open_store: Callable[[], RecordStore],
) -> None:
    store = open_store()
    node = replace(FULL_NODE, state=NodeState.IDLE, reason=None)
    down = replace(node, state=NodeState.DOWN, reason="fan")
    for hours, observed in ((0, node), (1, node), (2, down), (3, down), (4, node)):
        store.write_inventory(nodes=[observed], partitions=[], units=[], at_ms=at(hours))
    store.close()
    again = open_store()
    assert again.node_states(at_ms=UnixMs(T0 - 1)) == []
    assert [turn.state for turn in again.node_states(at_ms=at(1.5))] == [NodeState.IDLE]
    (then,) = again.node_states(at_ms=at(3.5))
    assert (then.node, then.from_at, then.state, then.reason) == (node.id, at(2), NodeState.DOWN, "fan")
    assert [turn.from_at for turn in again.node_states(at_ms=at(9))] == [at(4)]
    again.remove_ended_before(at(3))
    assert again.node_states(at_ms=at(1)) == []
    assert [turn.state for turn in again.node_states(at_ms=at(3))] == [NodeState.DOWN]


def test_no_state_change_is_recorded_when_only_an_exporter_names_a_node(store: RecordStore) -> None:
    unheard = Node(id=FULL_NODE.id, gpu_count=8)
    store.write_inventory(nodes=[unheard], partitions=[], units=[], at_ms=at(0))
    assert store.node_states(at_ms=at(0.5)) == []
    store.write_inventory(nodes=[replace(unheard, state=NodeState.MIXED)], partitions=[], units=[], at_ms=at(1))
    store.write_inventory(nodes=[unheard], partitions=[], units=[], at_ms=at(2))
    assert [turn.state for turn in store.node_states(at_ms=at(1.5))] == [NodeState.MIXED]
    assert [turn.state for turn in store.node_states(at_ms=at(2))] == [NodeState.UNKNOWN]


def test_past_reason_is_returned_when_it_changed_while_a_node_was_down(store: RecordStore) -> None:
    down = replace(FULL_NODE, state=NodeState.DOWN, reason="not responding")
    store.write_inventory(nodes=[down], partitions=[], units=[], at_ms=at(0))
    store.write_inventory(nodes=[replace(down, reason="power supply")], partitions=[], units=[], at_ms=at(1))
    assert [turn.reason for turn in store.node_states(at_ms=at(0.5))] == ["not responding"]
    assert [turn.reason for turn in store.node_states(at_ms=at(2))] == ["power supply"]


def test_past_states_can_be_added_when_they_are_imported(store: RecordStore) -> None:
    turn = NodeStateChange(node=FULL_NODE.id, from_at=T0, state=NodeState.DRAINED, reason="disk")
    store.write_node_states([turn])
    assert store.node_states(at_ms=at(1)) == [turn]


def test_names_of_others_match_nothing_when_the_scope_excludes_them(store: RecordStore) -> None:
    scope = {"visible_to": ("ada", frozenset({"nlp"}))}
    store.write_workloads(
        [
            job(71, user="ada", project="vision", name="train"),
            job(72, user="bob", project="nlp", name="train"),
            job(73, user="bob", project="vision", name="train"),
            job(74, user=None, project=None, name="train"),
            job(75, id=WorkloadId("kubernetes:train.a.1"), user="eve", project="train", name="train"),
        ],
        at_ms=T0,
    )

    def find(**where: object) -> set[str]:
        page = store.workloads(WorkloadFilter(**scope, **where))  # type: ignore[arg-type]  # fields by name
        assert page.total == len(page.workloads)
        return {workload.id for workload in page.workloads}

    assert find(text="train") == {"slurm:71", "slurm:72"}
    assert find(text="SLURM:7") == {"slurm:71", "slurm:72", "slurm:73", "slurm:74"}
    assert find(text="kubernetes:train.a.1") == {"kubernetes:train.a.1"}
    assert find(user="bob", is_known=True) == {"slurm:72"}
    assert find(user="bob", is_known=False) == {"slurm:73"}
    assert find(project="vision", is_known=False) == {"slurm:73"}
    assert find(is_known=False) == {"slurm:73", "slurm:74", "kubernetes:train.a.1"}
    assert len(find()) == 5


def ended_job(number: int, *, hours: float, **fields: object) -> Workload:
    ended = job(number, name=f"train-{number}", user="ada", started_at=at(hours - 1), ended_at=at(hours))
    changes: dict[str, object] = {"state": WorkloadState.COMPLETED, **fields}
    return replace(ended, **changes)  # type: ignore[arg-type]  # fields by name


def summary_of(workload: Workload, source: SummarySource = SummarySource.SAMPLES) -> JobSummary:
    node = NodeUsage(cores=8, cpu_s=100.5, gpus={"0": GpuUsage(util_ratio=0.25)})
    usage = JobUsage(run_s=3600, gpu_count=1, nodes={"n1": node})
    summary = summarize(workload, None if source is SummarySource.ACCOUNTING else usage, source=source)
    assert summary is not None
    return summary


def test_ended_jobs_are_listed_until_they_are_summarized(store: RecordStore) -> None:
    jobs = [ended_job(number, hours=number) for number in (1, 2, 3)]
    never_ran = ended_job(5, hours=2, state=WorkloadState.CANCELLED, started_at=None)
    store.write_workloads([*jobs, never_ran, job(4, state=WorkloadState.RUNNING, started_at=at(1))], at_ms=T0)

    def missing(limit: int = 10) -> list[str]:
        return [workload.id for workload in store.unsummarized(start_ms=at(0), end_ms=at(9), limit=limit)]

    assert missing() == ["slurm:3", "slurm:2", "slurm:1"]
    assert missing(2) == ["slurm:3", "slurm:2"]
    assert store.write_summaries([summary_of(jobs[1])]) == 1
    assert missing() == ["slurm:3", "slurm:1"]
    # It ran again after a requeue.
    store.write_workloads([ended_job(2, hours=5)], at_ms=T0)
    assert missing() == ["slurm:2", "slurm:3", "slurm:1"]


def test_summaries_are_read_back_and_outlive_their_jobs(store: RecordStore) -> None:
    jobs = [ended_job(number, hours=number) for number in (1, 2, 3)]
    store.write_workloads(jobs, at_ms=T0)
    summaries = [summary_of(workload) for workload in jobs]
    store.write_summaries(summaries)
    assert store.remove_ended_before(at(9)) == 3

    assert store.job_summary(jobs[0].id) == summaries[0]
    assert store.similar_summaries("ada", "train-#", limit=2) == [summaries[2], summaries[1]]
    assert store.similar_summaries("bob", "train-#", limit=2) == []
    table = store.summary_columns(start_ms=at(2), end_ms=at(3))
    assert table.select("workload", "user", "run_s", "gpu_util_ratio", "gpus_unused").rows() == [
        ("slurm:2", "ada", 3600.0, 0.25, 0)
    ]
    assert store.remove_summaries_before(at(2)) == 1
    assert store.job_summary(jobs[0].id) is None


def test_a_summary_with_numbers_stays_when_the_same_end_is_summarized_again(store: RecordStore) -> None:
    workload = ended_job(1, hours=2)
    empty, measured = (summary_of(workload, source) for source in (SummarySource.ACCOUNTING, SummarySource.SAMPLES))
    assert store.write_summaries([empty]) == 1
    assert store.write_summaries([measured]) == 1
    assert store.write_summaries([empty, summary_of(workload, SummarySource.JOBSTATS)]) == 0
    assert store.job_summary(workload.id) == measured
    assert store.write_summaries([summary_of(ended_job(1, hours=4), SummarySource.JOBSTATS)]) == 1
