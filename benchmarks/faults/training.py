"""One rank of a small data-parallel training, on CPU with gloo or on a GPU, and the injectors of faults. An injector writes when
it acts (monotonic nanoseconds, step): the truth is measured, not intended. No span of the trace names a fault.

Runs many cases in one process, since starting torch takes longer than a case.
"""

import copy
import fcntl
import gc
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

from clusterscape.track.scheduling import ThreadScheduling, subtract_counts

TOKENS = 32
BATCH = 4
LAYERS = 2
GPU_REPEAT = 1024
"""A GPU gets each sample so many times: else its work would be too short to see."""
CALIBRATION_RUNS = 5
SMALL_KERNELS = 400
STOP_S = 0.004
"""Of a duty cycle when a rank is throttled."""


def _device_marks() -> list[Any]:
    """Two events with times, before and after a piece of work."""
    return [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call] # torch does not annotate it


class Samples(Dataset[torch.Tensor]):
    """Samples of a case; the injector of a slow loader acts while one is read."""

    def __init__(self, run: "CaseRun") -> None:
        self._run = run

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, number: int) -> torch.Tensor:
        if number % self._run.batch == 0:
            self._run.inject("load")
        return torch.full((self._run.tokens(), self._run.width), (number % 7) / 7.0)


class CaseRun:
    """Runs one case on one rank and collects the episodes of its fault."""

    def __init__(self, case: dict[str, Any], rank: int, folder: Path) -> None:
        self.case, self.rank, self.folder = case, rank, folder
        self.width = int(case["parameters"]["width"])
        self.kind = case["kind"]
        self.is_guilty = self.kind is not None and case["rank"] in (None, rank)
        self.step = -1
        self.usual_s = 0.03
        self.episodes: list[dict[str, int]] = []
        self._random = random.Random(f"{case['seed']} {rank}")
        self.batch = BATCH * 3 // 2 if self.is_guilty and self.kind == "uneven_batch" else BATCH
        self.device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
        self._garbage: list[Any] = []
        self._file = Path(tempfile.mkdtemp(prefix="fault"))
        self._device_episodes: list[tuple[dict[str, int], Any, Any]] = []
        self._scheduling = ThreadScheduling()

    def tokens(self) -> int:
        """Tokens of a sample; random if sequence lengths are the fault."""
        if self.kind != "sequence_lengths":
            return TOKENS
        if self._drawn_at != self.step:
            self._drawn_at, self._drawn = self.step, max(8, int(TOKENS * self._random.lognormvariate(0.0, 0.7)))
        return self._drawn

    _drawn_at = -2
    _drawn = TOKENS

    def inject(self, place: str) -> None:
        """Let the fault act if it is due here."""
        if not self.is_guilty or self.step not in self.case["steps_with_fault"]:
            return
        act = getattr(self, f"_{self.kind}", None)
        own_place = "load" if "loader" in self.kind else self.case["place"]
        if act is None or place != own_place:
            return
        begin = time.monotonic_ns()
        marks = _device_marks() if self.device.type == "cuda" else []
        if marks:
            marks[0].record()
        act(self.case["size"] * self.usual_s)
        episode = {"rank": self.rank, "step": self.step, "begin_ns": begin, "end_ns": time.monotonic_ns()}
        self.episodes.append(episode)
        if marks:
            marks[1].record()
            self._device_episodes.append((episode, marks[0], marks[1]))

    def _settle_episodes(self) -> None:
        """An episode on a device ends when the device has finished what was launched."""
        if self._device_episodes:
            torch.cuda.synchronize()
        for episode, begin, end in self._device_episodes:
            episode["end_ns"] = max(episode["end_ns"], episode["begin_ns"] + int(begin.elapsed_time(end) * 1e6))

    def _launch_for(self, seconds: float, act: Any) -> None:
        """Run something for a time: on a device, so often as takes it so long without anything else."""
        if self.device.type == "cpu":
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                act()
            return
        for _ in range(max(1, round(seconds / self._unit_s))):
            act()

    def _measure_unit(self, act: Any) -> float:
        """Seconds that the device takes for it."""
        if self.device.type == "cpu":
            return 0.0
        marks = _device_marks()
        act()
        marks[0].record()
        for _ in range(CALIBRATION_RUNS):
            act()
        marks[1].record()
        torch.cuda.synchronize()
        return max(1e-5, float(marks[0].elapsed_time(marks[1])) / 1e3 / CALIBRATION_RUNS)

    def _slow_loader(self, seconds: float) -> None:
        time.sleep(seconds)

    _slow_loader_everywhere = _slow_loader
    _sleep = _slow_loader

    def _busy_loader(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            sum(number * number for number in range(1000))

    _python_loop = _busy_loader

    def _uncached_loader(self, seconds: float) -> None:
        path = self._file / "data"
        if not path.exists():
            path.write_bytes(os.urandom(8 << 20))
        until = time.monotonic() + seconds
        with path.open("rb", buffering=0) as file:
            while time.monotonic() < until:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                file.seek(self._random.randrange(8 << 20))
                file.read(65536)

    def _garbage_collection(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            gc.collect()

    def _checkpoint(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with (self._file / "model.pt").open("wb") as file:
                torch.save(self.model.state_dict(), file)
                file.flush()
                os.fsync(file.fileno())

    def _synced_log(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with (self._file / "log").open("a") as file:
            while time.monotonic() < until:
                file.write("step\n")
                file.flush()
                os.fsync(file.fileno())

    def _stopped(self, seconds: float) -> None:
        _stop_for(os.getpid(), seconds)

    def _file_lock(self, seconds: float) -> None:
        path = self._file / "lock"
        ready = multiprocessing.get_context("fork").Event()
        holder = multiprocessing.get_context("fork").Process(target=_hold_lock, args=(path, seconds, ready))
        holder.start()
        ready.wait()
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        holder.join()

    def _throttled(self, seconds: float) -> None:
        """Only starts: the signals come during the rest of the step."""
        child = os.fork()
        if child == 0:
            _throttle(os.getppid(), seconds)
        self._children.append(child)

    def _extra_products(self, seconds: float) -> None:
        self._launch_for(seconds, self._multiply)

    def _evaluation(self, seconds: float) -> None:
        self._launch_for(seconds, self._evaluate)

    def _multiply(self) -> None:
        torch.mm(self._extra, self._extra)

    def _evaluate(self) -> None:
        repeat = GPU_REPEAT if self.device.type == "cuda" else 1
        with torch.no_grad():
            self.model.module(torch.ones(BATCH, TOKENS * repeat, self.width, device=self.device))

    def _spinning_kernel(self, seconds: float) -> None:
        self._launch_for(seconds, self._spin)

    def _spin(self) -> None:
        torch.cuda._sleep(1_000_000)  # type: ignore[no-untyped-call] # torch does not annotate it

    def _large_copies(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._large.cpu()

    def _new_blocks(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            block = torch.empty(self._random.randrange(64 << 20, 512 << 20), dtype=torch.uint8, device=self.device)
            del block
            torch.cuda.empty_cache()

    def _reads_per_parameter(self, _: float) -> None:
        for _ in range(8):
            for parameter in self.model.parameters():
                parameter.detach().norm().item()

    def _needless_waits(self, _: float) -> None:
        for _ in range(40):
            torch.mm(self._extra, self._extra)
            torch.cuda.synchronize()

    def _many_small_kernels(self, _: float) -> None:
        small = self._extra[:8, :8]
        for _ in range(SMALL_KERNELS):
            small = small * 1.0

    def run(self) -> dict[str, Any]:
        """Train the steps of the case under the profiler and write the trace."""
        torch.manual_seed(self.case["seed"])
        width = self.width
        self._children: list[int] = []
        is_gpu = self.device.type == "cuda"
        torch.backends.cuda.matmul.allow_tf32 = True
        extra = 4096 if is_gpu and self.kind == "extra_products" else width
        self._extra = torch.ones(extra, extra, device=self.device)
        self._large = torch.ones(8 << 20 if is_gpu and self.kind == "large_copies" else 1, device=self.device)
        if self.kind == "garbage_collection" and self.is_guilty:
            for _ in range(40_000):
                loop: list[Any] = []
                loop.append(loop)
                self._garbage.append(loop)
        layers = [nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)] * LAYERS
        inner = nn.Sequential(*(copy.deepcopy(layer) for layer in layers))
        self.model = nn.parallel.DistributedDataParallel(inner.to(self.device), bucket_cap_mb=1)
        optimizer = torch.optim.AdamW(self.model.parameters(), fused=is_gpu or None)
        batches = iter(DataLoader(Samples(self), batch_size=self.batch))
        trace = self.folder / f"{self.case['case_id']}-rank{self.rank}.json.gz"
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.device.type == "cuda" else [])]
        plan = schedule(wait=0, warmup=1, active=self.case["steps"], repeat=1)
        for _ in range(2):
            self._train(batches, optimizer)
        begin = time.monotonic()
        for _ in range(3):
            self._train(batches, optimizer)
        usual = torch.tensor([(time.monotonic() - begin) / 3])
        dist.all_reduce(usual)
        self.usual_s = max(0.015, float(usual) / dist.get_world_size())
        unit = {"extra_products": self._multiply, "evaluation": self._evaluate, "spinning_kernel": self._spin}
        self._unit_s = self._measure_unit(unit[self.kind]) if self.is_guilty and self.kind in unit else 0.0
        watcher = _name_collections if self.case["parameters"]["names_pauses"] else None
        if watcher:
            gc.callbacks.append(watcher)
        dist.barrier()
        begin_ns = time.monotonic_ns()
        scheduled: list[dict[str, float]] = []
        with profile(
            activities=activities, schedule=plan, record_shapes=True, acc_events=True,
            on_trace_ready=lambda profiled: profiled.export_chrome_trace(str(trace)),
        ) as profiled:  # fmt: skip
            for number in range(-1, self.case["steps"]):
                self.step = number
                before = self._scheduling.read()
                self._train(batches, optimizer)
                profiled.step()
                if number >= 0:
                    after = self._scheduling.read()
                    scheduled.append({"step": number + 1, **subtract_counts(after, before)})
        end_ns = time.monotonic_ns()
        if watcher:
            gc.callbacks.remove(watcher)
        for child in self._children:
            os.waitpid(child, 0)
        self._garbage.clear()
        self._settle_episodes()
        return {
            "rank": self.rank, "usual_s": self.usual_s, "episodes": self.episodes, "trace": trace.name,
            "scheduled": scheduled, "begin_ns": begin_ns, "end_ns": end_ns,
        }  # fmt: skip

    def remove_files(self) -> None:
        """Remove what the injector wrote."""
        shutil.rmtree(self._file, ignore_errors=True)

    def _train(self, batches: Any, optimizer: torch.optim.Optimizer) -> None:
        batch = next(batches).to(self.device)
        if self.device.type == "cuda":
            batch = batch.repeat(1, GPU_REPEAT, 1)
        if self.kind == "slow_precision":
            torch.backends.cuda.matmul.allow_tf32 = not (self.is_guilty and self.step in self.case["steps_with_fault"])
        self.inject("before")
        loss = self.model(batch).square().mean()
        loss.backward()
        self.inject("between")
        optimizer.step()
        optimizer.zero_grad()
        self.inject("after")


_collecting: list[Any] = []


def _name_collections(phase: str, _: dict[str, int]) -> None:
    """Names the interpreter's collections in the trace, as a profiler with stacks does."""
    if phase == "start":
        mark: Any = record_function("Python GC")
        mark.__enter__()
        _collecting.append(mark)
    elif _collecting:
        _collecting.pop().__exit__(None, None, None)


def _stop_for(process: int, seconds: float) -> None:
    """Stop a process for a time, from a child."""
    child = os.fork()
    if child == 0:
        os.kill(process, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process, signal.SIGCONT)
        os._exit(0)
    os.waitpid(child, 0)


def _throttle(process: int, seconds: float) -> None:
    """Let a process run half of the time until it was stopped for this long, as a quota of CPU time does."""
    stopped = 0.0
    while stopped < seconds:
        os.kill(process, signal.SIGSTOP)
        time.sleep(STOP_S)
        stopped += STOP_S
        os.kill(process, signal.SIGCONT)
        time.sleep(STOP_S)
    os._exit(0)


def _hold_lock(path: Path, seconds: float, ready: Any) -> None:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ready.set()
        time.sleep(seconds)


def main() -> None:
    """Run as ``training.py CASES RANK RANKS STORE FOLDER SECONDS``."""
    cases = json.loads(Path(sys.argv[1]).read_text())
    rank, ranks, folder = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[5])
    until = time.monotonic() + float(sys.argv[6])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[4]}", rank=rank, world_size=ranks)
    for case in cases:
        is_over = torch.tensor([float(time.monotonic() > until)])
        dist.all_reduce(is_over)
        if float(is_over):
            break
        gc.collect()
        run = CaseRun(case, rank, folder)
        try:
            result = run.run()
        finally:
            run.remove_files()
        written = folder / f"{case['case_id']}-rank{rank}.part"
        written.write_text(json.dumps(result))
        written.rename(written.with_suffix(".truth.json"))
    dist.barrier()
    os._exit(0)  # torch's threads may otherwise abort while the interpreter ends


if __name__ == "__main__":
    main()
