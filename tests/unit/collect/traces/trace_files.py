"""Small Kineto files with known content, for tests: one rank is a list of events and facts."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def step(number: int, start_us: float, length_us: float) -> Json:
    """A marked step on the main thread."""
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": f"ProfilerStep#{number}",
        "pid": 1,
        "tid": 1,
        "ts": start_us,
        "dur": length_us,
    }


def kernel(name: str, start_us: float, length_us: float, stream: int = 7, **arguments: Any) -> Json:
    """A kernel of the device."""
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": start_us,
        "dur": length_us,
        "args": {"stream": stream, **arguments},
    }


def host(name: str, start_us: float, length_us: float) -> Json:
    """An operator of the host."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": length_us}


def document(events: Sequence[Json], rank: int | None = None, world_size: int | None = None) -> Json:
    """The document of a whole file."""
    head: Json = {"schemaVersion": 1}
    if rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    return {**head, "traceEvents": list(events)}


def write(path: Path, content: Json) -> Path:
    """Write a file, compressed according to its name."""
    data = json.dumps(content).encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def simple_rank(rank: int, world_size: int, late_us: float = 0.0, steps: int = 4) -> Json:
    """Steps of 1000 µs: a kernel, then an all-reduce that ends together on all ranks."""
    events: list[Json] = []
    for number in range(steps):
        at = 1_000_000.0 + 1000 * number
        events += [step(number, at, 1000), host("aten::mm", at + 10, 80), kernel("gemm", at + 100, 300 + late_us)]
        arrive = at + 400 + late_us
        events.append(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrive, at + 700 - arrive, stream=9))
    return document(events, rank, world_size)
