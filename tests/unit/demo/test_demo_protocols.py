"""Responses of the simulated protocols agree with the simulated events, in the shape that readers rely on."""

from typing import Any

import orjson
import pytest

from clusterscape.demo.exporter import Exporters
from clusterscape.demo.hardware import LARGE, SMALL, V100
from clusterscape.demo.scenario import DemoScenario
from clusterscape.demo.slurm_values import host_list, index_list, look_at_cluster
from clusterscape.demo.slurmrestd import accounting_answer, jobs_answer, nodes_answer, parse_time, partitions_answer
from clusterscape.demo.telemetry import FIELDS, DemoTelemetry
from clusterscape.model import UnixMs, WorkloadState
from clusterscape.simulate.faults import FaultKind


def parsed(answer: dict[str, object], key: str) -> list[dict[str, Any]]:
    """The response as a client parses it."""
    entries: list[dict[str, Any]] = orjson.loads(orjson.dumps(answer))[key]
    return entries


def is_optional_number(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"set", "infinite", "number"}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["gpu-007"], "gpu-007"),
        (["gpu-001", "gpu-002", "gpu-003", "gpu-007"], "gpu-[001-003,007]"),
        (["gpu-009", "gpu-010"], "gpu-[009-010]"),
    ],
)
def test_host_list_is_as_slurm_writes_it_when_names_are_numbered(names: list[str], text: str) -> None:
    assert host_list(names) == text


def test_index_list_draws_runs_together_when_they_follow_each_other() -> None:
    assert index_list([0, 1, 2, 5, 7]) == "0-2,5,7"


def test_gres_detail_names_the_gpus_held_when_jobs_run(usual: DemoScenario, anchor: UnixMs) -> None:
    moment = look_at_cluster(usual, anchor // 1000)
    running = {
        entry["job_id"]: entry for entry in parsed(jobs_answer(moment), "jobs") if entry["job_state"] == ["RUNNING"]
    }
    assert running.keys() == {life.demo.job.id for life, _ in moment.running}
    for life, attempt in moment.running:
        entry = running[life.demo.job.id]
        gres_type = "v100" if life.demo.job.partition == V100 else "a100"
        assert entry["gres_detail"] == [
            f"gpu:{gres_type}:{len(grant.gpus)}(IDX:{index_list(grant.gpus)})" for grant in attempt.grants
        ]
        assert [node["nodename"] for node in entry["job_resources"]["allocated_nodes"]] == [
            g.node for g in attempt.grants
        ]
        assert entry["nodes"] == host_list([grant.node for grant in attempt.grants])
        assert f"gres/gpu={life.demo.job.gpus}," in entry["tres_alloc_str"]
        assert entry["start_time"]["number"] == attempt.start_s
        assert is_optional_number(entry["time_limit"])
        assert entry["wckey"] == life.demo.experiment
        assert entry["account"] == life.demo.project


def test_waiting_jobs_have_reasons_when_the_queue_is_read(usual: DemoScenario, anchor: UnixMs) -> None:
    moment = look_at_cluster(usual, anchor // 1000)
    waiting = [entry for entry in parsed(jobs_answer(moment), "jobs") if entry["job_state"] == ["PENDING"]]
    assert waiting
    assert {entry["state_reason"] for entry in waiting} <= {
        "Resources",
        "Priority",
        "QOSMaxGRESPerUser",
        "Dependency",
        "BeginTime",
    }
    assert all(entry["gres_detail"] == [] and entry["nodes"] == "" for entry in waiting)
    assert all(f"gres/gpu={entry['tasks']['number']}," in entry["tres_req_str"] for entry in waiting)


def test_waiting_tasks_of_an_array_are_one_entry_when_the_queue_is_read(small: DemoScenario) -> None:
    life = next(
        life
        for life in small.lives.values()
        if life.demo.array and life.attempts and life.attempts[0].start_s > life.demo.job.submit_s
    )
    assert life.demo.array is not None
    at_s = life.attempts[0].start_s - 1
    moment = look_at_cluster(small, at_s)
    tasks = [
        w.demo.array.task_id
        for w in moment.waiting
        if w.demo.array and w.demo.array.array_id == life.demo.array.array_id
    ]
    (entry,) = [
        entry
        for entry in parsed(jobs_answer(moment), "jobs")
        if entry["array_job_id"]["number"] == life.demo.array.array_id and entry["job_state"] == ["PENDING"]
    ]
    assert entry["array_task_string"] == index_list(tasks)
    assert not entry["array_task_id"]["set"]


def test_node_states_follow_jobs_and_outages_when_nodes_are_read(usual: DemoScenario, anchor: UnixMs) -> None:
    moment = look_at_cluster(usual, anchor // 1000)
    nodes = {entry["name"]: entry for entry in parsed(nodes_answer(moment, usual.hardware), "nodes")}
    held: dict[str, int] = {}
    for _, attempt in moment.running:
        for grant in attempt.grants:
            held[grant.node] = held.get(grant.node, 0) + len(grant.gpus)
    for place, node in enumerate(usual.hardware.nodes):
        entry, count, outage = nodes[node.name], held.get(node.name, 0), moment.outages.get(place)
        assert entry["gres_used"].startswith(f"gpu:{node.machine.gres_type}:{count}(IDX:")
        if outage and outage.kind is FaultKind.FAIL:
            assert entry["state"][0] == "DOWN"
        else:
            assert entry["state"][0] == ("IDLE" if count == 0 else "ALLOCATED" if count == node.gpu_count else "MIXED")
            assert ("DRAIN" in entry["state"]) == (outage is not None)
        assert entry["reason"] == (outage.reason if outage else "")


def test_three_partitions_cover_all_nodes_when_partitions_are_read(usual: DemoScenario) -> None:
    partitions = parsed(partitions_answer(usual.hardware), "partitions")
    assert [entry["name"] for entry in partitions] == [SMALL, LARGE, V100]
    assert sum(entry["nodes"]["total"] for entry in partitions) == len(usual.hardware.nodes)
    assert partitions[1]["nodes"]["configured"] == "gpu-[033-096]"


def test_accounting_has_all_active_jobs_when_a_window_is_requested(usual: DemoScenario, anchor: UnixMs) -> None:
    now_s = anchor // 1000
    start_s, end_s = now_s - 6 * 3600, now_s - 3 * 3600
    entries_by_job = {
        entry["job_id"]: entry for entry in parsed(accounting_answer(usual, start_s, end_s, now_s), "jobs")
    }
    for life in usual.lives.values():
        ended_s = life.ended_s
        was_active = life.demo.job.submit_s < end_s and (ended_s is None or ended_s >= start_s)
        assert (life.demo.job.id in entries_by_job) == was_active
    states = {entry["state"]["current"][0] for entry in entries_by_job.values()}
    assert {"COMPLETED", "FAILED", "CANCELLED", "RUNNING"} <= states
    failed = next(entry for entry in entries_by_job.values() if entry["state"]["current"] == ["FAILED"])
    assert failed["exit_code"]["status"] == ["ERROR"]
    assert failed["exit_code"]["return_code"]["number"] > 0


@pytest.mark.parametrize(("text", "expected"), [(None, 5), ("", 5), ("17", 17), ("uts17", 17)])
def test_time_is_read_when_written_as_slurm_takes_it(text: str | None, expected: int) -> None:
    assert parse_time(text, 5) == expected


def test_exposition_is_as_dcgm_exporter_writes_it_when_rendered(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    text = Exporters(small, small_telemetry).render("gpu-005", anchor)
    assert text is not None
    lines = text.decode().splitlines()
    assert lines[0] == "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz)."
    assert lines[1] == "# TYPE DCGM_FI_DEV_SM_CLOCK gauge"
    assert len(lines) == len(FIELDS) * (2 + 8)
    assert "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %)." in lines
    name, _, rest = lines[2].partition("{")
    labels, _, value = rest.partition("} ")
    keys = [label.partition("=")[0] for label in labels.split(",")]
    assert name == "DCGM_FI_DEV_SM_CLOCK"
    assert keys == ["gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION", "hpc_job"]
    assert value.isdigit()
    power = next(line for line in lines if line.startswith("DCGM_FI_DEV_POWER_USAGE{"))
    assert len(power.rpartition(".")[2]) == 6


def test_exposition_names_the_holder_when_a_gpu_is_held(
    small: DemoScenario, small_telemetry: DemoTelemetry, anchor: UnixMs
) -> None:
    exporters = Exporters(small, small_telemetry)
    at_ms = anchor - 3_600_000
    holders = {
        small.hardware.unit_ids[unit]: life.demo.native_id
        for life, attempt in look_at_cluster(small, at_ms // 1000).running
        for unit in attempt.units
    }
    job_labels = {}
    for node in small.hardware.nodes:
        for line in (exporters.render(node.name, at_ms) or b"").decode().splitlines():
            if line.startswith("DCGM_FI_DEV_GPU_UTIL{"):
                labels = dict(label.split("=") for label in line.partition("{")[2].partition("}")[0].split(","))
                if "hpc_job" in labels:
                    job_labels[f"{node.name}:{labels['gpu'].strip(chr(34))}"] = labels["hpc_job"].strip('"')
    assert job_labels == holders


def test_exporter_is_silent_when_its_node_is_down(small: DemoScenario, small_telemetry: DemoTelemetry) -> None:
    outage = next(o for o in small.outages if o.kind is FaultKind.FAIL and o.from_s > small.origin_s)
    name = small.hardware.nodes[outage.node].name
    exporters = Exporters(small, small_telemetry)
    assert exporters.render(name, outage.from_s * 1000 - 1000) is not None
    assert exporters.render(name, outage.from_s * 1000) is None
    assert exporters.render(name, outage.to_s * 1000) is not None
    with pytest.raises(KeyError):
        exporters.render("gpu-999", outage.to_s * 1000)


def test_ended_job_leaves_the_queue_when_minutes_have_passed(usual: DemoScenario) -> None:
    life = next(life for life in usual.lives.values() if life.attempts and life.ended_s)
    assert life.ended_s is not None
    state = life.state_at(life.ended_s)
    assert state is not None
    shown = {entry["job_id"]: entry for entry in parsed(jobs_answer(look_at_cluster(usual, life.ended_s + 60)), "jobs")}
    assert shown[life.demo.job.id]["job_state"] != ["RUNNING"]
    assert shown[life.demo.job.id]["gres_detail"] == []
    assert state is not WorkloadState.RUNNING
    later = parsed(jobs_answer(look_at_cluster(usual, life.ended_s + 400)), "jobs")
    assert life.demo.job.id not in {entry["job_id"] for entry in later}
