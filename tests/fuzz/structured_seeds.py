"""Small valid files of every format, as values, so that a field can be changed: published schemas, made-up content."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl


class Table(NamedTuple):
    """Rows of text. ``comment``: lines before the header, where ``#`` stands for a value."""

    name: str
    header: list[list[str]]
    rows: list[list[str]]
    separator: str = ","
    comment: tuple[str, ...] = ()


def _rows(text: str, separator: str = ",") -> list[list[str]]:
    return [line.split(separator) for line in text.strip().splitlines()]


def _table(name: str, text: str, separator: str = ",", *, heading: bool = True, comment: tuple[str, ...] = ()) -> Table:
    rows = _rows(text, separator)
    return Table(name, rows[:1] if heading else [], rows[1:] if heading else rows, separator, comment)


DELIMITED = {
    "swf": _table(
        "trace.swf",
        """
1 0 10 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
2 5 -1 50 8 3.5 1024 8 60 -1 0 2 1 -1 2 1 1 10
3 4000 20 3000 2 -1 -1 2 3600 -1 5 1 1 -1 1 1 -1 -1
4 90000 7 30 16 -1 -1 16 60 -1 -1 3 2 -1 1 1 -1 -1
""",
        " ",
        heading=False,
        comment=(
            "; MaxProcs: #",
            "; UnixStartTime: #",
            "; MaxNodes: #",
            "; Queue: # batch",
            "; UnixStartTime: 893466664",
        ),
    ),
    "sacct": _table(
        "sacct.txt",
        """
JobID|User|Account|Partition|Submit|Start|End|ElapsedRaw|Timelimit|NCPUS|NNodes|AllocTRES|State
10|ann|bio|gpu|2024-03-01T10:00:00|2024-03-01T10:05:00|2024-03-01T11:05:00|3600|2-00:00:00|64|2|cpu=64,gres/gpu=16,node=2|COMPLETED
10.batch||bio||2024-03-01T10:05:00|2024-03-01T10:05:00|2024-03-01T11:05:00|3600||32|1|cpu=32|COMPLETED
11|bob|bio|gpu|2024-03-01T10:01:00|Unknown|2024-03-01T11:00:00|0|UNLIMITED|8|1|cpu=8,gres/gpu=1|CANCELLED by 1000
12|bob|bio|gpu|2024-03-02T10:03:00|2024-03-02T10:04:00|2024-03-02T10:09:00|300|00:05:00|8|1|cpu=8,gres/gpu=2|TIMEOUT
""",
        "|",
    ),
    "lumos": _table(
        "lumos.csv",
        """
,job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,node_hour,new_status
0,35079,35012,45081,0,0,8192.0,512.0,1535348017.0,102306,17348.0,18000.0,8882176.0,Pass
1,35088,35012,45081,0,0,8192.0,512.0,1535348020.0,102363,15780.0,18000.0,8079360.0,Killed
2,35089,35013,45081,0,8,64.0,1.0,1535448020.0,3,1578.0,3600.0,1.0,Failed
""",
    ),
    "helios": _table(
        "cluster_log.csv",
        """
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
14,uVM,vch,4,16,1,NODE_FAIL,2020-06-09 18:41:27,2020-06-09 18:41:28,2020-06-09 18:45:37,249,1
15,uVM,vch,8,16,1,COMPLETED,2020-06-10 18:41:27,2020-06-10 18:41:28,2020-06-10 18:45:37,249,1
""",
    ),
    "acme": _table(
        "trace_kalos.csv",
        """
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
dlc1,u1,8,64,960,1000,,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:26+00:00,,,18,10,
dlc2,u2,1,8,128,9,,Pretrain,CANCELLED,2023-05-18 11:28:42+08:00,2023-05-18 11:28:54+08:00,2023-05-18 11:30:04+08:00,,,82,12.0,6
""",
    ),
    "openb": _table(
        "pods.csv",
        """
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,6000,12288,1,460,,LS,Succeeded,427061,428061,427071
p1,500,1,0,0,,BE,Pending,427062,428061,
p2,88000,327680,8,1000,V100M16|V100M32,Burstable,Failed,9437497,10769854,9437497
""",
    ),
    "alibaba_2020": _table(
        "pai_task_table.csv",
        """
a1,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC
a2,ps,2.0,Terminated,1739180.0,1749200.0,600.0,29.3,,
a2,worker,4.0,Failed,1739190.0,1749200.0,600.0,29.3,100.0,V100
a3,worker,1.0,Running,1939190.0,,600.0,29.3,200.0,T4
""",
        heading=False,
    ),
    "google_2011": _table(
        "part-00000-of-00500.csv",
        """
600000000,,351,0,,0,u1,2,9,0.025,0.0159,0.0004,0
600000000,,351,1,,0,u1,2,9,0.025,0.0159,0.0004,0
605000000,,351,0,70,1,u1,2,9,0.025,0.0159,0.0004,0
606000000,,351,1,71,1,u1,2,9,0.025,0.0159,0.0004,0
906000000,,351,0,70,4,u1,2,9,0.025,0.0159,0.0004,0
907000000,,351,1,71,3,u1,2,9,0.025,0.0159,0.0004,0
0,2,352,0,72,0,u2,0,0,,,,
""",
        heading=False,
    ),
    "google_2019": _table(
        "instance_events.csv",
        """
time,type,collection_id,instance_index,machine_id,priority,user
600000000,0,351,0,0,9,u1
605000000,3,351,0,70,9,u1
906000000,6,351,0,70,9,u1
700000000,0,352,0,0,9,u2
705000000,3,352,0,70,9,u2
806000000,7,352,0,70,9,u2
""",
    ),
    "table": _table(
        "workload-1.csv",
        """
name,time,application,num_replicas,batch_size
cifar10-0,107,cifar10,6,2048
bert-1,90110.5,bert,12,384
""",
    ),
    "table_with_times": _table(
        "jobs.csv",
        """
job_id,user,submit_time,start_time,end_time,num_gpu,status
1,a,2023-01-01 00:00:00,2023-01-01 00:01:00,2023-01-01 01:00:00,4,success
2,b,2023-01-03 00:00:00,2023-01-03 00:01:00,2023-01-03 01:00:00,8,error
3,b,2023-01-04 00:00:00,2023-01-04 00:01:00,2023-01-04 01:00:00,8,weird
""",
    ),
}

LINES = {
    "slurm_text": Table(
        "scontrol.txt",
        [],
        [
            *_rows(
                "NodeName=gpu01 Arch=x86_64 CPUTot=8 AvailableFeatures=a100 ActiveFeatures=a100 Gres=gpu:a100:8(S:0-1) "
                "GresDrain=N/A GresUsed=gpu:a100:2(IDX:0-1) NodeAddr=gpu01 NodeHostName=gpu01 OS=Linux 5.4 #1 RealMemory=1024 "
                "State=MIXED+DRAIN Partitions=a100,all Reason=bad fan [root@2020-11-01T10:00:00]",
                " ",
            ),
            *_rows(
                "JobId=7 ArrayJobId=5 ArrayTaskId=2 JobName=train it UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A "
                "Priority=100 Nice=0 Account=ml QOS=normal JobState=RUNNING Reason=None Dependency=(null) "
                "Requeue=1 Restarts=0 BatchFlag=1 "
                "ExitCode=0:0 DerivedExitCode=0:0 RunTime=00:00:10 TimeLimit=01:00:00 SubmitTime=1699999000 "
                "EligibleTime=1699999000 StartTime=1700000000 EndTime=1700003600 SuspendTime=None "
                "SecsPreSuspend=0 Partition=a100 NodeList=gpu01 "
                "NumNodes=1 NumCPUs=1 NumTasks=1 TRES=cpu=1,node=1,gres/gpu=2 JOB_GRES=gpu:2 Nodes=gpu01 CPU_IDs=0 Mem=0 "
                "GRES=gpu:a100:2(IDX:0-1) Features=(null) Reservation=(null) Command=/home/ada/a.sh WorkDir=/ TresPerNode=gpu:2",
                " ",
            ),
            *_rows(
                "7|7|ada|ml||a100|normal|COMPLETED|1699999000|1699999000|1700000000|1700000600|600|00:00:00|60|1|gpu01|"
                "cpu=1,gres/gpu=2|cpu=1,gres/gpu=2|0:0|0:0|100||train",
                " ",
            ),
        ],
        " ",
    ),
    "nvidia_smi": _table(
        "smi.csv",
        """
timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], temperature.gpu
2023/11/14 22:13:20.000, 0, NVIDIA A100, 97 %, 1024 MiB, 81920 MiB, 300.50 W, 60
2023/11/14 22:13:21.000, 0, NVIDIA A100, [N/A], 1024 MiB, 81920 MiB, [N/A], 60
2023/11/14 22:13:22.000, 0, NVIDIA A100, 5 %, 1024 MiB, 81920 MiB, 301.50 W, 61
2023/11/14 22:13:22.000, 1, NVIDIA A100, 5 %, 1024 MiB, 81920 MiB, 301.50 W, 61
""",
        ", ",
    ),
}


def _kineto(rank: int) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for number in range(3):
        at = 1_000_000.0 + 1000 * number
        host = {"ph": "X", "pid": 1, "tid": 1}
        device = {"ph": "X", "pid": 0, "tid": 7}
        collective = {
            "stream": 7, "correlation": 10 * number + 2, "Collective name": "allreduce", "In msg nelems": 10, "dtype": "Float",
            "Process Group Name": "0", "Seq": number, "Src Rank": 0, "Dst Rank": 1, "Group size": 2,
        }  # fmt: skip
        events += [
            {**host, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at, "dur": 1000},
            {**host, "cat": "user_annotation", "name": f"forward mb{number}", "ts": at + 5, "dur": 200},
            {**host, "cat": "cpu_op", "name": "aten::mm", "ts": at + 10, "dur": 80,
             "args": {"External id": 5, "Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "Ev Idx": 1}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 12, "dur": 2,
            "args": {"correlation": 10 * number + 1}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 15, "dur": 2,
            "args": {"correlation": 10 * number + 2}},
            {**device, "cat": "kernel", "name": "gemm", "ts": at + 100, "dur": 300, "args": {"stream": 7,
            "correlation": 10 * number + 1}},
            {**device, "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "ts": at + 400, "dur": 300,
            "args": collective},
            {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + 20,
             "args": {"Total Allocated": 4096, "Device Type": 1, "Device Id": 0}},
        ]  # fmt: skip
    return {
        "schemaVersion": 1,
        "distributedInfo": {
            "backend": "nccl", "rank": rank, "world_size": 2, "pg_config": [{"pg_name": "0", "pg_desc": "default",
            "ranks": [0, 1]}],
        },
        "deviceProperties": [{"id": 0, "name": "H200"}],
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": events,
    }  # fmt: skip


def _megatron() -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for rank in (0, 1):
        for step in (0, 1):
            at = 1000.0 * step
            mark = {"ph": "i", "pid": rank, "tid": 0, "args": {"iteration": step}}
            events.append({**mark, "name": "iteration begin", "ts": at})
            for number, name in enumerate(("forward", "backward")):
                place = {"iteration": step, "microbatch": 0, "model_chunk": 0, "pp_rank": rank}
                span = {"pid": rank, "tid": 0, "name": name, "args": place}
                events += [
                    {**span, "ph": "B", "ts": at + 100 * number + 10},
                    {**span, "ph": "E", "ts": at + 100 * number + 90},
                ]
            events.append({**mark, "name": "iteration end", "ts": at + 300})
    return events


_MINDSPORE = {
    "maps": {
        f"device {device}": {
            "MatMul-op1": {"st": 10.0, "ed": 40.0, "dur": 30.0},
            "AllReduce-op2": {"st": 50.0, "ed": 90.0, "dur": 40.0},
            "Send-op3": {"st": 95.0, "ed": 99.0, "dur": 4.0},
        }
        for device in (0, 1)
    },
    "stage_data": {"stage 0": {"devices": ["device 0"]}, "stage 1": {"devices": ["device 1"]}},
}
_GRAPH = {
    "graphs": {
        str(stage): {
            "rank_ids": [str(stage)],
            "op_nodes": [
                {"node_id": "1", "name": "Default/MatMul-op1", "scope": "Default/layer", "type": "MatMul", "input": [],
                 "parallel_shard": "[[4, 1], [1]]", "parallel_type": "", "output_shape": [4, 256],
                 "output_data_type": "DT_FLOAT32"},
                {"node_id": "2", "name": "Default/Send-op2", "scope": "Default", "type": "Send", "input": ["1"],
                 "attr": {"sr_tag": "1", "group": "g"}, "parallel_group": ["g"], "output_shape": "[4]",
                 "output_data_type": "DT_TUPLE"},
            ],
        }
        for stage in (0, 1)
    }
}  # fmt: skip

_JOB = {
    "job_id": 7,
    "array": {"job_id": 0, "task_id": None, "task": ""},
    "array_task_id": {"set": False, "infinite": False, "number": 0},
    "array_task_string": "1-3%2",
    "job_state": ["RUNNING"],
    "state": {"current": ["COMPLETED"], "reason": "None"},
    "user": "ada",
    "user_name": "ada",
    "account": "ml",
    "partition": "a100",
    "nodes": "gpu[01-02]",
    "gres_detail": ["gpu:a100:4(IDX:0-2,5)", "gpu:a100:1(IDX:0)"],
    "tres_req_str": "cpu=8,gres/gpu=4",
    "tres_per_node": "gres:gpu:a100:4",
    "node_count": {"set": True, "infinite": False, "number": 2},
    "required": {"CPUs": 4},
    "allocation_nodes": 2,
    "tres": {
        "allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "gres", "name": "gpu", "count": 4}],
        "requested": [{"type": "node", "name": "", "count": 2}, {"type": "gres", "name": "gpu:a100", "count": 4}],
    },
    "time_limit": {"set": True, "infinite": False, "number": 60},
    "time": {
        "start": 1700000000,
        "end": 1700000600,
        "submission": 1699999000,
        "elapsed": 600,
        "limit": 60,
        "eligible": 1699999000,
    },
    "submit_time": 1699999000,
    "start_time": {"set": True, "infinite": False, "number": 1700000000},
    "suspend_time": 0,
    "exit_code": {"return_code": 0, "signal": {"signal_id": 9}},
    "comment": {"job": "x=1"},
}
_SLURM = {
    "meta": {"Slurm": {"version": {"major": "22", "micro": "8", "minor": "05"}}},
    "errors": [],
    "nodes": [
        {
            "name": f"gpu0{number}", "state": ["IDLE", "DRAIN"], "gres": "gpu:a100:8(S:0-1)",
            "gres_used": "gpu:a100:0(IDX:N/A)",
            "partitions": ["a100"], "features": "a100,rack=r1", "real_memory": {"set": True, "infinite": False,
            "number": 1024}, "cpus": 8,
        }
        for number in (1, 2)
    ],
    "partitions": [{"name": "a100", "nodes": "gpu[01-02]", "state": "UP", "max_time_limit": 60, "flags": ["DEFAULT"]}],
    "reservations": [{"name": "r", "start_time": 1, "end_time": 2, "node_list": "gpu01", "flags": ["MAINT"], "tres": "cpu=8"}],
    "jobs": [_JOB, {**_JOB, "job_id": 8}],
}  # fmt: skip
_ATTEMPT = {
    "start_time": "2017-10-07 01:12:09",
    "end_time": "2017-10-07 01:13:23",
    "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}],
}
_PHILLY = [
    {
        "status": "Pass", "vc": "ee9", "jobid": f"application_{number}", "attempts": [_ATTEMPT, _ATTEMPT],
        "submitted_time": f"2017-10-0{number} 01:11:39", "user": "ce",
    }
    for number in (5, 6, 7)
]  # fmt: skip
_CAPTURED = {
    "schema": "clusterscape_capture", "version": 1, "rank": 0, "world_size": 2, "backend": "nccl", "stage": 0,
    "process_groups": [{"name": "0", "ranks": [0, 1], "kind": "tp"}],
    "communications": [{"name": "nccl:all_reduce", "group": "0", "sequence": 1, "elements": 10}],
    "modules": [
        {"path": "blocks.1", "class": "Linear", "parameters": [{"name": "weight", "shape": [8, 8], "local_shape": [4, 8],
         "placements": [{"mesh_dim": "tp", "kind": "shard", "dim": 0}]}], "inputs": [{"shape": [2, 8]}],
         "outputs": [{"shape": [2, 4]}]},
    ],
}  # fmt: skip

DOCUMENTS: dict[str, dict[str, tuple[str, Any]]] = {
    "job_traces": {
        "sacct_json": ("sacct.json", {"meta": {}, "jobs": [_JOB, {**_JOB, "job_id": 9}], "errors": []}),
        "philly": ("cluster_job_log.json", _PHILLY),
    },
    "traces": {
        "kineto": ("rank0.json", _kineto(0)),
        "megatron": ("megatron.json", _megatron()),
        "mindspore": ("marey_timeline.json", _MINDSPORE),
        "mindspore_graph": ("graph.json", _GRAPH),
    },
    "slurm": {"slurm": ("slurm.json", _SLURM)},
    "captures": {"capture": ("capture_rank0.json", _CAPTURED)},
}


def nsight_export(path: Path) -> Path:
    """An export of Nsight Systems with two steps."""
    thread = (7 << 24) | 42
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.executescript(
            """
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                correlationId INTEGER, demangledName INTEGER, shortName INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, streamId INTEGER,
                correlationId INTEGER, bytes INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
                nameId INTEGER);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
                globalTid INTEGER);
            """
        )
        names = [(1, "gemm"), (2, "ncclDevKernel_AllGather_RING_LL"), (3, "cudaLaunchKernel_v7000"), (4, "forward")]
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        for step in (0, 1):
            at = 10_000 * step
            kernels = [(at + 2000, at + 2500, 0, 7, step + 11, 1, 1), (at + 2600, at + 2900, 0, 9, step + 21, 2, 2)]
            database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", kernels)
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 7, 13, 4096)", (at + 1900, at + 1950)
            )
            calls = [(at + 1100, at + 1110, thread, step + 11, 3), (at + 1200, at + 1210, thread, step + 21, 3)]
            database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", calls)
            ranges = [
                (at + 1000, at + 3000, 59, f"step {step}", None, thread),
                (at + 1080, at + 1300, 59, None, 4, thread),
            ]
            database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", ranges)
        database.commit()
    return path


def straggler_table() -> pl.DataFrame:
    """A job of two stages and two replicas, two steps."""
    kinds = ("forward-compute", "backward-compute", "forward-send", "grads-reduce-scatter")
    rows = [
        (dp, stage, 2 * stage + dp, step, kind, 0.1 * number + 0.01 * dp, 0.09, number, 0)
        for dp in (0, 1)
        for stage in (0, 1)
        for step in (0, 1)
        for number, kind in enumerate(kinds)
    ]
    schema = ["dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mb_id"]
    return pl.DataFrame(rows, schema=schema, orient="row")
