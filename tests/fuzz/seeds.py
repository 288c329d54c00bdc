"""Seeds of fuzzing: a small valid input of each reader, and the words of its format for mutations."""

import json

EXPOSITION = b"""# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA H100",Hostname="n1"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",device="nvidia1",modelName="NVIDIA \\"H100\\"",Hostname="n1"} NaN 1700000000000
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1"} 5.1e2
# EOF
"""

SLURM = json.dumps(
    {
        "meta": {"Slurm": {"version": {"major": "22", "micro": "8", "minor": "05"}}},
        "errors": [],
        "nodes": [
            {
                "name": "gpu01",
                "state": ["IDLE", "DRAIN"],
                "gres": "gpu:a100:8(S:0-1)",
                "partitions": ["a100"],
                "features": "a100,rack=r1",
                "real_memory": {"set": True, "infinite": False, "number": 1024},
            }
        ],
        "jobs": [
            {
                "job_id": 7,
                "array_task_id": {"set": False, "infinite": False, "number": 0},
                "array_task_string": "1-3%2",
                "job_state": ["RUNNING"],
                "state": {"current": ["COMPLETED"]},
                "user_name": "ada",
                "account": "ml",
                "nodes": "gpu[01-02]",
                "gres_detail": ["gpu:a100:4(IDX:0-2,5)"],
                "tres_req_str": "cpu=8,gres/gpu=4",
                "tres_per_node": "gres:gpu:a100:4",
                "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 4}]},
                "time_limit": {"set": True, "infinite": False, "number": 60},
                "time": {"start": 1700000000, "end": 1700000600, "submission": 1699999000, "elapsed": 600},
                "submit_time": 1699999000,
                "start_time": 1700000000,
                "exit_code": {"return_code": 0, "signal": {"signal_id": 9}},
                "comment": {"job": "x=1"},
            }
        ],
    }
).encode()

SWF = b"""; Version: 2.2
; MaxProcs: 128
; UnixStartTime: 893466664
; Queue: 1 batch
1 0 10 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
2 5 -1 50 8 3.5 1024 8 60 -1 0 2 1 -1 2 1 1 10
"""

KINETO = json.dumps(
    {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
        "deviceProperties": [{"id": 0, "name": "H200"}],
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 10.5, "dur": 900},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 11, "dur": 5,
             "args": {"External id": 5, "Input Dims": [[2, 3], [3, 4]], "Ev Idx": 1}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 2,
             "args": {"correlation": 9}},
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "pid": 0, "tid": 7, "ts": 20, "dur": 30,
             "args": {"stream": 7, "correlation": 9, "Collective name": "allreduce", "In msg nelems": 10, "dtype": "Float",
                      "Process Group Name": "0", "Group size": 2}},
            {"ph": "f", "id": 9, "pid": 0, "tid": 7, "ts": 20, "cat": "ac2g", "name": "ac2g", "bp": "e"},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy \u00e4 \\n\"", "pid": 0, "tid": 7, "ts": 60, "dur": -1},
        ],
        "traceName": "rank1.json",
    }
).encode()  # fmt: skip

SEEDS = {"exposition": EXPOSITION, "slurm": SLURM, "swf": SWF, "kineto": KINETO}

WORDS = {
    "exposition": ["DCGM_FI_DEV_GPU_UTIL", "# TYPE", "NaN", "+Inf", '{gpu="0"}', "\\n", "1e309"],
    "slurm": ['"jobs"', '"nodes"', "null", "gpu:a100:4(IDX:0-3)", "gpu[01-09]", "-1", "4294967294", "true"],
    "swf": ["; MaxProcs:", "-1", "1e400", "99999999999999999999", " 4 "],
    "kineto": ['"traceEvents"', '"ph"', '"X"', '"ts"', '"dur"', "1e308", "-0", '\\"', "\\ud800", "null", "[", "{"],
}
"""What libFuzzer inserts in addition to random bytes."""
