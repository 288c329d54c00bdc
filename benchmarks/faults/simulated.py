"""Traces of simulated devices (marked ``simulated`` in every case): a host thread that launches, a stream that runs what was
launched, copies, synchronizations, and collectives that end together. Written as Kineto files with what a profiler would record.

The truth is what the simulator did: an injector notes when the planted time begins and ends.
"""

import gzip
import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.kinds import Case
from benchmarks.faults.recording import describe_case

LAUNCH_US = 6.0
KERNEL_US = 120.0
LAYERS = 24
NOISE = 0.02
TRANSFER_US = 400.0
BUCKETS = 4
FLOPS_PER_US = 1e8


@dataclass
class Rank:
    """One rank: clocks of host and device in microseconds, events written so far."""

    number: int
    generator: random.Random
    host: float = 0.0
    device: float = 0.0
    correlation: int = 0
    reduced: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    """When the device has finished each bucket of gradients."""

    def write(self, category: str, name: str, start: float, end: float, thread: int = 1, **arguments: Any) -> None:
        """Write an event."""
        event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": round(start, 3)}
        self.events.append(event | {"dur": round(end - start, 3), "args": arguments})

    def jitter(self, length_us: float) -> float:
        """The length with the usual variation."""
        return length_us * max(0.2, self.generator.gauss(1.0, NOISE))

    def call(self, name: str, length_us: float) -> None:
        """A call of the runtime that does not launch."""
        self.write("cuda_runtime", name, self.host, self.host + length_us)
        self.host += length_us

    def launch(self, name: str, length_us: float, *, operator: str = "aten::op", shape: int | None = None) -> None:
        """An operator that launches a kernel."""
        begin = self.host
        self.host += self.jitter(LAUNCH_US * 0.5)
        self.correlation += 1
        self.write(
            "cuda_runtime", "cudaLaunchKernel", self.host, self.host + LAUNCH_US * 0.4, correlation=self.correlation
        )
        self.host += LAUNCH_US * 0.5
        start = max(self.device, self.host + 3.0)
        self.device = start + self.jitter(length_us)
        self.write("kernel", name, start, self.device, 7, correlation=self.correlation, stream=7)
        arguments: dict[str, Any] = (
            {} if shape is None else {"Input Dims": [[shape, 512], [512, 512]], "Input type": ["float", "float"]}
        )
        self.write("cpu_op", operator, begin, self.host, **arguments)

    def copy_to_host(self, length_us: float) -> None:
        """A blocking copy: the host waits until the device has finished everything before it."""
        self.correlation += 1
        begin = self.host
        start = max(self.device, self.host + 3.0)
        self.device = start + length_us
        self.write("cuda_runtime", "cudaMemcpyAsync", begin, begin + 3.0, correlation=self.correlation)
        self.write(
            "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", start, self.device, 7,
            correlation=self.correlation, bytes=int(length_us * 1e4),
        )  # fmt: skip
        self.host = self.device + 2.0
        self.write("cuda_runtime", "cudaStreamSynchronize", begin + 3.5, self.host)

    def read_scalar(self) -> None:
        """``tensor.item()``."""
        begin = self.host
        self.copy_to_host(1.5)
        self.write("cpu_op", "aten::_local_scalar_dense", begin - 0.5, self.host + 0.5)
        self.write("cpu_op", "aten::item", begin - 1.0, self.host + 1.0)
        self.host += 2.0

    def reduce(self, arrival: float, end: float) -> None:
        """An all-reduce on its own stream."""
        self.correlation += 1
        launched = min(self.host, arrival)
        self.write("cuda_runtime", "cudaLaunchKernelExC", launched - 4.0, launched, correlation=self.correlation)
        facts: dict[str, Any] = {
            "Collective name": "allreduce",
            "Process Group Name": "0",
            "In msg nelems": 1 << 20,
            "dtype": "Float",
        }
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        self.write("kernel", name, arrival, end, 20, correlation=self.correlation, stream=20, **facts)
        self.reduced = end + 1.0

    def synchronize(self) -> None:
        """``torch.cuda.synchronize()``."""
        begin = self.host
        self.host = max(self.host, self.device) + 2.0
        self.write("cuda_runtime", "cudaDeviceSynchronize", begin, self.host)


class SimulatedRun:
    """All ranks of one case, step by step: collectives are settled after each step's ranks have arrived."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ranks = [
            Rank(number, random.Random(f"{case.seed} {case.kind is None} {number}")) for number in range(case.ranks)
        ]
        self.episodes: list[dict[str, Any]] = []
        self.step = 0
        shared = random.Random(f"{case.seed} {case.case_id.removesuffix('-healthy')}")
        self.kernel_us = KERNEL_US * shared.uniform(0.6, 1.6)
        self.layers = round(LAYERS * shared.uniform(0.6, 1.4))
        self.usual_us = 0.0
        self._lengths = random.Random(f"{case.seed} lengths")

    def run(self) -> None:
        """Simulate a step to learn its usual length, then those of the case."""
        self.step = -1
        self._train()
        self.usual_us = max(rank.device for rank in self.ranks)
        for rank in self.ranks:
            rank.events.clear()
        for step in range(self.case.steps):
            self.step = step
            self._train()

    def _is_due(self, rank: Rank) -> bool:
        is_guilty = self.case.rank in (None, rank.number) and self.case.kind is not None
        return is_guilty and self.step in self.case.steps_with_fault

    def _note(self, rank: Rank, begin: float, end: float) -> None:
        self.episodes.append(
            {"rank": rank.number, "step": self.step, "begin_ns": round(begin * 1e3), "end_ns": round(end * 1e3)}
        )

    def _train(self) -> None:
        starts = [rank.host for rank in self.ranks]
        for rank in self.ranks:
            self._forward_and_backward(rank)
        self._settle()
        for rank, start in zip(self.ranks, starts, strict=True):
            for _ in range(6):
                rank.launch("multi_tensor_apply_kernel<adam>", self.kernel_us * 0.3, operator="aten::_fused_adamw_")
            self._act(rank, "after")
            rank.write("user_annotation", f"ProfilerStep#{self.step}", start, rank.host)
            rank.host += 5.0

    def _forward_and_backward(self, rank: Rank) -> None:
        kind, due = self.case.kind, self._is_due(rank)
        begin = rank.host
        rank.host += rank.jitter(150.0)
        if due and kind == "device_slow_loader":
            self._wait(rank, "pause", write=False)
        rank.write("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin, rank.host)
        self._act(rank, "before")
        scale = self._scale(rank)
        shape = round(512 * scale["work"])
        for phase, factor in (("forward", 1.0), ("backward", 2.0)):
            for layer in range(self.layers):
                parts = 30 if kind == "tiny_kernels" else 1
                length = self.kernel_us * factor * scale["all"] * shape / 512 / parts
                for _ in range(parts):
                    operator_us = length * (scale["operator"] if layer % 2 else 1.0) * (0.1 if parts > 1 else 1.0)
                    name = ("ampere_sgemm_128x64", "attention_kernel")[layer % 2]
                    rank.launch(f"{name}_{phase}", operator_us, operator="aten::mm", shape=shape // parts)
                if phase == "backward" and (layer + 1) * BUCKETS // self.layers > layer * BUCKETS // self.layers:
                    rank.ready.append(rank.device)
                if kind == "scalar_reads" and due:
                    self._noted(rank, rank.read_scalar)
                if kind == "synchronizations" and due:
                    self._noted(rank, rank.synchronize)
            self._act(rank, "between" if phase == "forward" else "never")
        rank.ready[-1] = rank.device

    def _noted(self, rank: Rank, act: Any) -> None:
        """What a drained device loses: from the end of its work until the next kernel can start."""
        before = rank.device
        act()
        self._note(rank, before, rank.host + LAUNCH_US + 3.0)

    def _scale(self, rank: Rank) -> dict[str, float]:
        kind, due, size = self.case.kind, self._is_due(rank), self.case.size
        scale = {"all": 1.0, "operator": 1.0, "work": 1.0}
        if kind == "device_sequence_lengths":
            scale["work"] = min(3.0, max(0.3, rank.generator.lognormvariate(0.0, 0.5)))
        if not due:
            return scale
        compute_us = self.kernel_us * 3.0 * self.layers
        if kind == "slow_clock":
            scale["all"] = 1.0 + 0.3 * size
            self._note(rank, rank.host, rank.host + compute_us * 0.3 * size)
        if kind == "slow_operator":
            scale["operator"] = 1.0 + 0.6 * size
            self._note(rank, rank.host, rank.host + compute_us / self.layers * (self.layers // 2) * 0.6 * size)
        return scale

    def _wait(self, rank: Rank, name: str, *, write: bool = True) -> None:
        begin = max(rank.host, rank.device)
        length = self.case.size * self.usual_us * 0.5
        # The device runs dry first: what is planted is what it loses.
        start = rank.host
        rank.host = begin + length
        if write:
            rank.write("python_function" if name == "Python GC" else "cuda_runtime", name, start, rank.host)
        self._note(rank, begin, rank.host)

    def _act(self, rank: Rank, place: str) -> None:
        kind = self.case.kind
        if kind is None or not self._is_due(rank) or place != self.case.place:
            return
        calls = {"blocking_allocation": "cudaMalloc", "long_call": "cudaModuleLoadDataEager"}
        if kind == "device_pause":
            self._wait(rank, "", write=False)
        elif kind == "device_garbage_collection":
            self._wait(rank, "Python GC")
        elif kind in calls:
            self._wait(rank, calls[kind])
        elif kind == "extra_kernels":
            begin = rank.device
            count = max(4, int(self.case.size * self.layers))
            for _ in range(count):
                rank.launch("ampere_sgemm_128x64_forward", self.kernel_us, operator="aten::mm", shape=512)
            self._note(rank, max(begin, rank.device - count * self.kernel_us), rank.device)
        elif kind in ("copies_to_host", "device_checkpoint"):
            begin_host, begin = rank.host, max(rank.host, rank.device)
            for _ in range(8):
                start = rank.host
                rank.copy_to_host(self.case.size * self.usual_us * 0.04)
                rank.write("cpu_op", "aten::copy_", start - 0.5, rank.host + 0.5)
                rank.host += 3.0
            if kind == "device_checkpoint":
                rank.host += self.case.size * self.usual_us * 0.2
                rank.write("user_annotation", "save_checkpoint", begin_host, rank.host)
            self._note(rank, begin, rank.host)

    def _settle(self) -> None:
        """The buckets of gradients: they end together; the first ones run while the backward pass still computes."""
        is_joined = self.case.kind == "unhidden_transfers"
        backward = self.kernel_us * 2.0 * self.layers
        for bucket in (BUCKETS - 1,) if is_joined else range(BUCKETS):
            factor = float(BUCKETS) if is_joined else 1.0
            arrivals = [max(rank.reduced, rank.ready[bucket]) for rank in self.ranks]
            end = max(arrivals) + TRANSFER_US * factor * (backward / 4000.0)
            for rank, arrival in zip(self.ranks, arrivals, strict=True):
                rank.reduce(arrival, end + rank.generator.uniform(0, 1))
        for rank in self.ranks:
            rank.device = max(rank.device, rank.reduced)
            rank.ready.clear()


def simulate_cases(cases: Sequence[Case], folder: Path) -> int:
    """Write the cases that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for case in cases:
        if (folder / f"{case.case_id}.json").exists():
            continue
        run = SimulatedRun(case)
        run.run()
        files = []
        for rank in run.ranks:
            document = {
                "schemaVersion": 1,
                "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": case.ranks},
                "traceEvents": rank.events,
            }
            path = folder / f"{case.case_id}-rank{rank.number}.json.gz"
            data = gzip.compress(json.dumps(document).encode(), 6, mtime=0)
            path.write_bytes(data)
            files.append({"path": path.name, "format": "kineto", "sha256": hashlib.sha256(data).hexdigest()})
        setup = {
            "world_size": case.ranks, "backend": "nccl", "device": "simulated", "seed": case.seed, "steps": case.steps,
            "usual_s": run.usual_us / 1e6,
        }  # fmt: skip
        document = describe_case(case, setup, _join(run.episodes), files)
        (folder / f"{case.case_id}.json").write_text(json.dumps(document, indent=1) + "\n")
        count += 1
    return count


def _join(episodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One episode per rank and step, as long as all of its parts together."""
    joined: dict[tuple[int, int], dict[str, Any]] = {}
    for episode in episodes:
        key = episode["rank"], episode["step"]
        if key in joined:
            joined[key]["end_ns"] += episode["end_ns"] - episode["begin_ns"]
        else:
            joined[key] = dict(episode)
    return list(joined.values())
