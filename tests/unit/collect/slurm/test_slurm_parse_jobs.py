"""Workloads and allocations from Slurm's JSON queue."""

import pytest
from unit.collect.slurm.documents import (
    END_S,
    NEW_JOBS,
    NODES,
    OLD_JOBS,
    START_S,
    SUBMIT_S,
    jobs,
    new_job,
    node,
    nodes,
    number,
    old_job,
    old_place,
)

from clusterscape.collect.slurm.parse_jobs import ParsedJobs, parse_jobs
from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_nodes
from clusterscape.model import AllocationSource, UnixMs, Workload, WorkloadKind, WorkloadState

NOW = UnixMs(1_700_000_120_000)
INVENTORY = parse_nodes(NODES)


def parse(*entries: object, inventory: SlurmInventory = INVENTORY) -> ParsedJobs:
    return parse_jobs(jobs(*entries), inventory, NOW)


def parse_job(entry: object, inventory: SlurmInventory = INVENTORY) -> Workload:
    (workload,) = parse(entry, inventory=inventory).workloads
    return workload


def held(parsed: ParsedJobs) -> list[tuple[str, str, AllocationSource]]:
    return [(allocation.workload, allocation.unit, allocation.source) for allocation in parsed.allocations]


INDEX, WHOLE = AllocationSource.SCHEDULER_INDEX, AllocationSource.WHOLE_NODE


def test_suspended_time_is_left_out_when_a_job_was_suspended() -> None:
    times = {"start_time": START_S, "suspend_time": START_S + 500, "pre_sus_time": 300}
    running = parse_job(old_job(1, "RUNNING", nodes="gpu01", **times))
    assert (running.suspended_s, running.suspended_at) == (200, None)
    assert running.run_s(UnixMs((START_S + 800) * 1000)) == 600
    suspended = parse_job(old_job(1, "SUSPENDED", nodes="gpu01", **times))
    assert suspended.suspended_at == (START_S + 500) * 1000
    assert suspended.run_s(UnixMs((START_S + 800) * 1000)) == 300
    never = parse_job(old_job(1, "RUNNING", nodes="gpu01", start_time=START_S, suspend_time=0, pre_sus_time=0))
    assert never.run_s(UnixMs((START_S + 800) * 1000)) == 800


def test_meaning_is_the_same_when_shape_is_old_or_new() -> None:
    old, new = parse_jobs(OLD_JOBS, INVENTORY, NOW), parse_jobs(NEW_JOBS, INVENTORY, NOW)
    assert old == new
    assert old.is_complete
    assert [(workload.id, workload.state) for workload in old.workloads] == [
        ("slurm:10", WorkloadState.RUNNING),
        ("slurm:11", WorkloadState.WAITING),
        ("slurm:12", WorkloadState.FAILED),
    ]
    assert held(old) == [
        ("slurm:10", "gpu01:4", INDEX),
        ("slurm:10", "gpu01:5", INDEX),
        ("slurm:10", "gpu02:0", INDEX),
    ]


def test_running_job_is_read_whole_when_undamaged() -> None:
    running = parse_jobs(OLD_JOBS, INVENTORY, NOW).workloads[0]
    assert running == Workload(
        id=running.id,
        state=WorkloadState.RUNNING,
        kind=WorkloadKind.JOB,
        name="train-01",
        user="alice",
        project="nlp",
        experiment="train",
        partition="a100",
        resource_type="A100-3",
        qos="normal",
        priority=12,
        gpus_requested=3,
        nodes_requested=2,
        time_limit_s=3600,
        submitted_at=UnixMs(SUBMIT_S * 1000),
        eligible_at=UnixMs(SUBMIT_S * 1000),
        started_at=UnixMs(START_S * 1000),
        nodes=("gpu01", "gpu02"),
        gpus_allocated=3,
        cpus=1,
        memory_requested_bytes=2**30,
    )


def test_times_are_plans_when_the_job_waits() -> None:
    waiting = parse_job(old_job(1, "PENDING", state_reason="Priority", state_description="behind others"))
    assert waiting.started_at is None
    assert waiting.ended_at is None
    assert waiting.expected_start_at == START_S * 1000
    assert waiting.pending_reason == "Priority"
    assert waiting.tags["reason_detail"] == "behind others"
    assert parse_job(old_job(1, "PENDING", start_time=0)).expected_start_at is None


def test_end_is_known_when_the_job_ended() -> None:
    failed = parse_job(old_job(1, "FAILED", nodes="gpu01", exit_code=9))
    assert (failed.started_at, failed.ended_at) == (START_S * 1000, END_S * 1000)
    assert (failed.exit_code, failed.exit_signal) == (None, 9)


def test_start_is_unknown_when_cancelled_while_waiting() -> None:
    cancelled = parse_job(old_job(1, "CANCELLED", nodes="", start_time=END_S))
    assert (cancelled.started_at, cancelled.ended_at) == (None, END_S * 1000)


@pytest.mark.parametrize(
    ("changes", "gpus", "resource_type"),
    [
        ({"tres_req_str": "cpu=1,gres/gpu=8,gres/gpu:a100=8"}, 8, "A100-8"),
        ({"tres_per_job": "", "tres_per_node": "gres/gpu:4", "node_count": 3}, 12, "A100-12"),
        ({"tres_per_job": "", "tres_per_node": "gres:gpu:v100:2", "node_count": 2}, 4, "V100-4"),
        ({"tres_per_job": "", "tres_per_task": "cpu=2,gres/gpu=1", "tasks": number(6)}, 6, "A100-6"),
        ({"tres_per_job": "", "tres_per_socket": "gpu:1", "sockets_per_node": 2, "node_count": 2}, 4, "A100-4"),
        ({"tres_per_job": "gres/gpu:nvidia_h100_80gb_hbm3:2"}, 2, "H100-80G-2"),
        ({"tres_per_job": "", "tres_req_str": ""}, 0, None),
        ({"partition": "all"}, 2, None),
        ({"partition": "a100,v100"}, 2, None),
    ],
)
def test_gpu_request_is_parsed_when_written_in_any_form(
    changes: dict[str, object], gpus: int, resource_type: str | None
) -> None:
    waiting = parse_job(old_job(1, "PENDING", **changes))
    assert (waiting.gpus_requested, waiting.resource_type) == (gpus, resource_type)


def test_gpus_held_count_when_an_exclusive_job_asked_for_none() -> None:
    entry = old_job(1, tres_per_job="", gres_detail=["gpu:v100:4(IDX:0-3)"], nodes="v1", job_resources=old_place("v1"))
    assert (parse_job(entry).gpus_requested, parse_job(entry).resource_type) == (4, "V100-4")


def test_waiting_array_becomes_its_tasks_when_listed() -> None:
    parsed = parse(
        old_job(7, "PENDING", array_job_id=7, array_task_string="3-5%2"),
        old_job(9, array_job_id=7, array_task_id=1, gres_detail=["gpu:a100:1(IDX:2)"], nodes="gpu01"),
    )
    assert [workload.id for workload in parsed.workloads] == ["slurm:7_3", "slurm:7_4", "slurm:7_5", "slurm:7_1"]
    assert [workload.gpus_requested for workload in parsed.workloads] == [2, 2, 2, 2]
    assert parsed.workloads[3].tags == {"job_id": "9", "array_job": "7"}
    assert held(parsed) == [("slurm:7_1", "gpu01:2", INDEX)]


def test_array_stays_whole_when_its_tasks_are_cut_short() -> None:
    waiting = parse_job(old_job(7, "PENDING", array_job_id=7, array_task_string="1-3,9,..."))
    assert waiting.id == "slurm:7"
    assert waiting.tags["array_tasks"] == "1-3,9,..."


def test_components_are_distinguished_when_the_job_is_heterogeneous() -> None:
    parsed = parse(old_job(10, het_job_id=10), old_job(11, het_job_id=10, het_job_offset=1))
    assert [workload.id for workload in parsed.workloads] == ["slurm:10+0", "slurm:10+1"]
    assert parsed.workloads[1].tags["job_id"] == "11"


def test_new_life_begins_when_the_job_was_requeued() -> None:
    first, again = START_S, START_S + 600
    place = {"gres_detail": ["gpu:a100:1(IDX:0)"], "nodes": "gpu01"}
    before = parse(old_job(1, start_time=first, **place))
    waiting = parse(old_job(1, "PENDING", restart_cnt=1, start_time=0))
    after = parse(old_job(1, restart_cnt=1, start_time=again, **place))
    assert before.allocations[0].from_at == first * 1000
    assert (waiting.workloads[0].state, waiting.workloads[0].restarts) == (WorkloadState.WAITING, 1)
    assert not waiting.allocations
    assert after.allocations[0].from_at == again * 1000


def test_interactive_job_is_a_session_when_it_has_no_batch_script() -> None:
    assert parse_job(old_job(1, batch_flag=False)).kind is WorkloadKind.SESSION


def test_experiment_and_tags_come_from_the_comment_when_it_is_json() -> None:
    workload = parse_job(
        old_job(1, comment='{"experiment": "exp-a", "model": "llama"}', features="nvlink", resv_name="course")
    )
    assert workload.experiment == "exp-a"
    assert workload.tags == {"model": "llama", "constraint": "nvlink", "reservation": "course"}


@pytest.mark.parametrize(
    "changes",
    [
        {"job_resources": {"nodes": "gpu[01-02]", "allocated_nodes": {"0": {}, "1": {}}}},
        {"job_resources": {"nodes": {"list": "gpu[01-02]"}}},
        {"job_resources": None, "nodes": "gpu[01-02]"},
    ],
)
def test_nodes_are_found_in_order_when_only_a_hostlist_names_them(changes: dict[str, object]) -> None:
    parsed = parse(old_job(1, gres_detail=["gpu:a100:1(IDX:7)", "gpu:a100:1(IDX:0)"], **changes))
    assert held(parsed) == [("slurm:1", "gpu01:7", INDEX), ("slurm:1", "gpu02:0", INDEX)]


def test_share_is_an_allocation_but_no_gpu_when_sharded() -> None:
    parsed = parse(
        old_job(1, gres_detail=["shard:2(IDX:1)"], nodes="v1", tres_per_job="", tres_per_node="gres:shard:2")
    )
    assert held(parsed) == [("slurm:1", "v1:1", INDEX)]
    assert parsed.workloads[0].gpus_requested == 0
    assert parsed.workloads[0].tags["shared_gpu"] == "shard:2"


def test_mig_instances_are_held_by_ordinal_when_slurm_numbers_them() -> None:
    inventory = parse_nodes(nodes(node("m1", gres="gpu:a100_3g.20gb:4")))
    parsed = parse(old_job(1, gres_detail=["gpu:a100_3g.20gb:1(IDX:2)"], nodes="m1"), inventory=inventory)
    assert held(parsed) == [("slurm:1", "m1:mig2", INDEX)]


def test_whole_nodes_are_held_when_only_counts_are_reported() -> None:
    by_total = parse(old_job(1, nodes="gpu[01-02]", tres_alloc_str="cpu=2,gres/gpu=16", gres_detail=[]))
    by_node = parse(old_job(1, nodes="v1", gres_detail=["gpu:v100:4"]))
    assert [(unit, source) for _, unit, source in held(by_total)] == [
        (f"gpu0{node}:{gpu}", WHOLE) for node in (1, 2) for gpu in range(8)
    ]
    assert [unit for _, unit, _ in held(by_node)] == ["v1:0", "v1:1", "v1:2", "v1:3"]
    assert by_total.allocations[0].confidence < 1


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": "gpu[01-02]", "tres_alloc_str": "gres/gpu=15"},
        {"nodes": "v1", "gres_detail": ["gpu:v100:3"]},
        {"nodes": "unheard-of", "tres_alloc_str": "gres/gpu=8"},
        {"nodes": "v1", "gres_detail": ["gpu:v100:1(IDX:9)"]},
        {"nodes": "cpu1", "gres_detail": ["gpu:0"]},
    ],
)
def test_nothing_is_guessed_when_slurm_does_not_report_it(changes: dict[str, object]) -> None:
    assert not parse(old_job(1, **changes)).allocations


def test_index_counts_when_the_node_is_not_known_yet() -> None:
    parsed = parse(old_job(1, nodes="n1", gres_detail=["gpu:2(IDX:0-1)"]), inventory=SlurmInventory())
    assert held(parsed) == [("slurm:1", "n1:0", INDEX), ("slurm:1", "n1:1", INDEX)]


def test_completing_job_holds_nothing_more_when_its_indices_are_gone() -> None:
    parsed = parse(
        old_job(1, "COMPLETING", nodes="v1", gres_detail=[], tres_alloc_str="gres/gpu=4"),
        new_job(2, "CANCELLED", "COMPLETING", nodes="v1"),
    )
    assert not parsed.allocations
    assert [workload.state for workload in parsed.workloads] == [WorkloadState.RUNNING, WorkloadState.CANCELLED]
    assert parsed.workloads[0].tags["slurm_state"] == "COMPLETING"


def test_start_is_now_when_a_running_job_has_none() -> None:
    parsed = parse(old_job(1, nodes="v1", gres_detail=["gpu:v100:1(IDX:0)"], start_time=None))
    assert parsed.allocations[0].from_at == NOW


def test_damaged_jobs_are_counted_and_completeness_is_denied_when_any_is_lost() -> None:
    parsed = parse(
        old_job(1),
        17,
        old_job(0),
        {"job_id": 3},
        old_job(4, "MARTIAN"),
        old_job(5, nodes="gpu[1"),
        old_job(6, "PENDING"),
    )
    assert [workload.id for workload in parsed.workloads] == ["slurm:1", "slurm:6"]
    assert parsed.dropped == {
        "jobs: not an object": 1,
        "jobs: no job id": 1,
        "jobs: unknown state": 2,
        "jobs: unreadable nodes": 1,
    }
    assert not parsed.is_complete


def test_job_survives_when_only_its_gres_is_damaged() -> None:
    parsed = parse(
        old_job(1, nodes="gpu01", gres_detail=["gpu:a100:1(IDX:"]),
        old_job(2, nodes="gpu01", gres_detail=["gpu:a100:1(IDX:0)", "gpu:a100:1(IDX:0)"]),
        old_job(3, "PENDING", tres_per_job="gres/gpu:1(:"),
    )
    assert len(parsed.workloads) == 3
    assert not parsed.allocations
    assert sum(parsed.dropped.values()) == 3
    assert parsed.is_complete


def test_response_is_incomplete_when_slurm_reports_errors_with_jobs() -> None:
    document = jobs(old_job(1)) | {"errors": [{"error": "Partial answer"}]}
    assert not parse_jobs(document, INVENTORY, NOW).is_complete


def test_cores_and_memory_are_those_of_the_job_when_slurm_lists_them() -> None:
    tres = {"tres_req_str": "cpu=12,mem=350M,node=1", "tres_alloc_str": "cpu=24,mem=350M,node=1"}
    [running] = parse(old_job(1, **tres)).workloads
    [waiting] = parse(old_job(2, "PENDING", tres_req_str="cpu=12,mem=1.5T,node=2", tres_alloc_str="")).workloads

    assert (running.cpus, running.memory_requested_bytes) == (24, 350 * 2**20)
    assert (waiting.cpus, waiting.memory_requested_bytes) == (12, 3 * 2**39)
