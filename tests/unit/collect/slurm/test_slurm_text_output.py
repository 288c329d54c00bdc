"""Text of Slurm 20.11 and before, whose commands have no ``--json``: the same workloads, nodes and history."""

from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_jobs import parse_jobs
from clusterscape.collect.slurm.parse_nodes import parse_nodes, parse_partitions
from clusterscape.collect.slurm.text_output import (
    HISTORY_FIELDS,
    parse_history_text,
    parse_jobs_text,
    parse_nodes_text,
)
from clusterscape.model import NodeState, UnixMs, WorkloadState

NOW = UnixMs(1_700_000_500_000)
NODES = "\n".join(
    f"NodeName=gpu0{number} Arch=x86_64 CoresPerSocket=4 CPUAlloc=1 CPUTot=8 CPULoad=0.10 AvailableFeatures=a100,nvlink "
    f"ActiveFeatures=a100,nvlink Gres=gpu:a100:4(S:0-1) GresDrain=N/A GresUsed=gpu:a100:2(IDX:0-1) NodeAddr=10.0.0.{number} "
    f"NodeHostName=gpu0{number} Version=20.11.9 OS=Linux 5.4.0 #1 SMP RealMemory=1024 AllocMem=0 FreeMem=100 "
    f"Sockets=2 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=a100,all "
    f"CfgTRES=cpu=8,mem=1G,gres/gpu=4 AllocTRES= {reason}"
    for number, state, reason in (
        (1, "MIXED", ""),
        (2, "IDLE+DRAIN", "Reason=bad fan: replace [root@2020-11-01T10:00:00]"),
    )
)
JOB = (
    "JobId={id} {array}JobName={name} UserId={user}(1000) GroupId=ada(1000) MCS_label=N/A Priority=100 Nice=0 "
    "Account=ml QOS=normal JobState={state} Reason={reason} Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 "
    "ExitCode=0:0 DerivedExitCode=0:0 RunTime=00:00:10 TimeLimit=1-01:00:00 TimeMin=N/A SubmitTime=1699999000 "
    "EligibleTime=1699999000 StartTime={start} EndTime=1700090000 Deadline=N/A SuspendTime=None SecsPreSuspend=0 Partition=a100 "
    "AllocNode:Sid=login:1 ReqNodeList=(null) ExcNodeList=(null) NodeList={nodes} NumNodes=2 NumCPUs=2 NumTasks=1 CPUs/Task=1 "
    "TRES=cpu=2,node=2,billing=2,gres/gpu=3 Socks/Node=* JOB_GRES=gpu:3 {held}MinCPUsNode=1 Features=nvlink Reservation=(null) "
    "OverSubscribe=OK Command=/home/ada/a b.sh --lr=0.1 WorkDir=/home/ada Comment={comment} Power= TresPerNode=gpu:2"
)
HELD = "Nodes=gpu01 CPU_IDs=0 Mem=0 GRES=gpu:a100:2(IDX:0-1) Nodes=gpu02 CPU_IDs=0 Mem=0 GRES=gpu:a100:1(IDX:3) "
"""A job with different GPUs on its nodes."""
WAITING = {"state": "PENDING", "reason": "Resources", "start": "Unknown", "nodes": "(null)", "held": ""}
RUNNING = {"state": "RUNNING", "reason": "None", "start": "1700000000", "nodes": "gpu[01-02]", "held": HELD}


def job(number: int, values: dict[str, str], **others: str) -> str:
    return JOB.format_map(
        {"id": str(number), "array": "", "name": "train", "user": "ada", "comment": "x=1"} | values | others
    )


def owners(*numbers: int) -> str:
    return "".join(f"{number} ada\n" for number in numbers)


def test_nodes_have_gpus_and_states_when_scontrol_prints_them() -> None:
    document = parse_nodes_text(NODES)
    inventory = parse_nodes(document)
    assert document["meta"] == {"Slurm": {"release": "20.11.9"}}
    first, second = inventory.nodes
    assert (first.id, first.gpu_count, first.machine_type, first.cpu_count) == ("gpu01", 4, "A100", 8)
    assert first.partitions == ("a100", "all")
    assert (second.state, second.reason) == (NodeState.DRAINED, "bad fan: replace")
    assert len(inventory.units) == 8
    assert inventory.host_names["gpu01"] == ("10.0.0.1",)  # type: ignore[index]
    assert parse_partitions({"partitions": []}, inventory)[1] == {}


def test_running_job_holds_its_gpus_when_scontrol_prints_its_details() -> None:
    inventory = parse_nodes(parse_nodes_text(NODES))
    parsed = parse_jobs(parse_jobs_text(job(7, RUNNING), owners(7)), inventory, NOW)
    (workload,) = parsed.workloads
    assert parsed.is_complete
    assert (workload.id, workload.user, workload.name, workload.state) == (
        "slurm:7",
        "ada",
        "train",
        WorkloadState.RUNNING,
    )
    assert (workload.time_limit_s, workload.gpus_requested) == (90_000, 3)
    assert workload.started_at == 1_700_000_000_000
    assert {held.unit for held in parsed.allocations} == {"gpu01:0", "gpu01:1", "gpu02:3"}


def test_nodes_of_one_group_hold_the_same_when_scontrol_joins_them() -> None:
    inventory = parse_nodes(parse_nodes_text(NODES))
    held = "Nodes=gpu[01-02] CPU_IDs=0 Mem=0 GRES=gpu:a100:2(IDX:1-2) "
    parsed = parse_jobs(parse_jobs_text(job(7, RUNNING, held=held)), inventory, NOW)
    assert {held.unit for held in parsed.allocations} == {"gpu01:1", "gpu01:2", "gpu02:1", "gpu02:2"}


def test_older_spelling_is_read_when_gres_are_indices_only() -> None:
    inventory = parse_nodes(parse_nodes_text(NODES))
    held = "Nodes=gpu01 CPU_IDs=0 Mem=0 GRES_IDX=gpu(IDX:0-1) "
    parsed = parse_jobs(parse_jobs_text(job(7, RUNNING, held=held, nodes="gpu01")), inventory, NOW)
    assert {held.unit for held in parsed.allocations} == {"gpu01:0", "gpu01:1"}


def test_array_and_its_waiting_tasks_are_told_apart_when_scontrol_prints_them() -> None:
    inventory = parse_nodes(parse_nodes_text(NODES))
    lines = [
        job(8, WAITING, array="ArrayJobId=8 ArrayTaskId=3-5%2 ArrayTaskThrottle=2 "),
        job(9, RUNNING, array="ArrayJobId=8 ArrayTaskId=2 "),
    ]
    parsed = parse_jobs(parse_jobs_text("\n".join(lines)), inventory, NOW)
    assert {workload.id: workload.state.value for workload in parsed.workloads} == {
        "slurm:8_2": "running",
        "slurm:8_3": "waiting",
        "slurm:8_4": "waiting",
        "slurm:8_5": "waiting",
    }


def test_fields_are_slurms_own_when_the_name_of_a_job_looks_like_them() -> None:
    inventory = parse_nodes(parse_nodes_text(NODES))
    name = "x UserId=eve(0) GroupId=eve(0) MCS_label=N/A JobState=COMPLETED Nodes=gpu01 CPU_IDs=0 Mem=0 GRES=gpu:a100:4(IDX:0-3)"
    (workload,) = parse_jobs(parse_jobs_text(job(7, WAITING, name=name), owners(7)), inventory, NOW).workloads
    assert (workload.user, workload.state, workload.name) == ("ada", WorkloadState.WAITING, name)
    comment = "TresPerNode=gpu:900 UserId=eve(0) Nodes=gpu01 CPU_IDs=0 Mem=0 GRES=gpu:a100:4(IDX:0-3)"
    parsed = parse_jobs(parse_jobs_text(job(7, WAITING, comment=comment), owners(7)), inventory, NOW)
    assert parsed.workloads[0].gpus_requested == 3
    assert parsed.allocations == ()


def test_made_up_line_is_dropped_when_a_name_contains_a_line_break() -> None:
    inventory = parse_nodes(parse_nodes_text(NODES))
    text = job(7, WAITING, name="x\n" + job(3, RUNNING, user="bob"))
    parsed = parse_jobs(parse_jobs_text(text, owners(7) + "3 eve\n"), inventory, NOW)
    assert [workload.user for workload in parsed.workloads] == []
    assert not parsed.is_complete
    copied = job(7, WAITING) + "\n" + job(3, RUNNING) + "\n" + job(3, RUNNING)
    parsed = parse_jobs(parse_jobs_text(copied, owners(7, 3)), inventory, NOW)
    assert [workload.id for workload in parsed.workloads] == ["slurm:7"]


def test_history_has_executions_and_codes_when_sacct_prints_a_table() -> None:
    row = {
        "JobIDRaw": "12", "JobID": "10_2", "User": "ada", "Account": "ml", "Partition": "a100", "QOS": "normal",
        "State": "CANCELLED by 1000", "Submit": "1699999000", "Eligible": "1699999000", "Start": "1700000000",
        "End": "1700000700", "ElapsedRaw": "600", "Suspended": "00:01:40", "TimelimitRaw": "60", "NNodes": "2",
        "NodeList": "gpu[01-02]", "ReqTRES": "cpu=2,gres/gpu=8", "AllocTRES": "cpu=2,gres/gpu:a100=8,gres/gpu=8",
        "ExitCode": "0:15", "DerivedExitCode": "1:0", "Priority": "5", "JobName": "a|b",
    }  # fmt: skip
    line = "|".join(row.get(field, "") for field in HISTORY_FIELDS)
    inventory = parse_nodes(parse_nodes_text(NODES))
    parsed = parse_history(parse_history_text(f"{line}\ndamaged|line\n"), inventory, NOW)
    (workload,) = parsed.workloads
    assert (workload.id, workload.name, workload.user, workload.state) == (
        "slurm:10_2", "a|b", "ada", WorkloadState.CANCELLED,
    )  # fmt: skip
    assert (workload.gpus_allocated, workload.suspended_s, workload.time_limit_s) == (8, 100, 3600)
    assert (workload.exit_signal, workload.derived_exit_code) == (15, 1)
    assert len(parsed.allocations) == 8  # all GPUs of both nodes
