"""Tracked runs of the demo: the files that a tracker would have sent, from a workstation outside the cluster.

The cost of sharing a GPU is as measured on an H200: with time slicing, two trainings took twice as long each; MPS gained
17 %. Deterministic in seed and anchor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clusterscape.model.arrays import Float64s
from clusterscape.model.run_frames import NO_STEP, SampleMethod, SampleScope, encode_event, encode_samples

HOST = "workstation-1"
FILE = "tracker.spool"
_AGO_MS = 34 * 3_600_000
"""The runs ended before the demo's day of history, which is filled in only after the newest sample."""
_TOTAL_SAMPLES = 120_000
_EPOCHS = 6
_MPS_GAIN = 1.17
_IDLE_WATTS, _LIMIT_WATTS = 78.5, 700.0
_DRIVER = (
    "name, uuid, driver_version, clocks.max.sm [MHz], power.limit [W]\n"
    "NVIDIA H200, GPU-5c0ffee0-0000-4000-8000-000000000001, 580.95.05, 1980 MHz, 700.00 W\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The parameters of one run. ``share``: fraction of its speed without other runs."""

    experiment: str
    workload: str
    batch_size: int = 256
    share: float = 1.0
    letter: str = "0"
    collocation: str = "-"
    state: str = "completed"
    cause: str | None = None
    part: float = 1.0  # share of the work done before it ended
    script: str = "train.py"
    loading_s: float = 0.0  # waiting for data, per second


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """A run's file as it would be sent."""

    run: str
    data: bytes = field(repr=False)


# By batch size: samples per second without other runs, utilization, memory in bytes.
_SPEEDS = {128: (410.0, 0.78, 9e9), 256: (549.0, 0.93, 15e9), 512: (610.0, 0.97, 27e9)}


def iter_runs(*, seed: int, anchor_ms: int) -> Iterator[DemoRun]:
    """All runs, oldest first, grouped by workload."""
    generator = np.random.default_rng([seed, 8])
    at_ms = anchor_ms - _AGO_MS
    for number, workload in enumerate(_plan()):
        longest_s = 0.0
        for place, run in enumerate(workload):
            part = run.share / sum(member.share for member in workload)
            demo_run, seconds = _record(run, at_ms, f"{number:02d}{place}", generator, part=part)
            longest_s = max(longest_s, seconds)
            yield demo_run
        at_ms += int((longest_s + 20) * 1000)


def _plan() -> list[list[_Run]]:
    sizes = [
        [_Run(experiment="batch size", workload=f"batch {size} #{repeat}", batch_size=size)]
        for size in _SPEEDS
        for repeat in (1, 2, 3)
    ]
    too_large = _Run(
        experiment="batch size",
        workload="batch 1024",
        batch_size=1024,
        state="out_of_memory",
        cause="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.00 GiB.",
        part=0.01,
    )
    alone = _Run(experiment="sharing a GPU", workload="alone")
    slices = replace(alone, workload="time slices", share=0.5)
    mps = replace(alone, workload="mps", share=0.5 * _MPS_GAIN, collocation="mps")
    loading = replace(alone, workload="waits for data", loading_s=0.45, script="train_slow_disk.py")
    sharing = [[alone], _pair(slices, slices), _pair(mps, mps)]
    uneven = _pair(
        replace(mps, workload="mps 70/30", share=0.82, collocation="mps=70"),
        replace(mps, workload="mps 70/30", share=0.35, collocation="mps=30"),
    )
    stopped = replace(alone, workload="stopped", state="cancelled", cause="stopped from outside", part=0.3)
    return [*sizes, [too_large], *sharing, *sharing, *sharing, uneven, [loading], [loading], [stopped]]


def _pair(first: _Run, second: _Run) -> list[_Run]:
    suffix = "" if first.collocation == "-" else "_mps"
    return [replace(first, letter=f"0_A{suffix}"), replace(second, letter=f"0_B{suffix}")]


def _record(
    run: _Run, at_ms: int, number: str, generator: np.random.Generator, *, part: float
) -> tuple[DemoRun, float]:
    """``part``: the run's fraction of the GPU's work; below 1 the GPU is shared."""
    shared = part < 1
    speed, util, memory = _SPEEDS.get(run.batch_size, (610.0, 0.97, 140e9))
    rate = speed * run.share * (1 - run.loading_s) * float(generator.normal(1.0, 0.012))
    seconds = max(4.0, _TOTAL_SAMPLES * run.part / rate)
    name = f"demo-{at_ms // 1000}-{number}"
    started = at_ms + 40
    ended = started + int(seconds * 1000)
    seconds_at = np.arange(0.5, seconds, 1.0)
    parts = [*_events(run, name, at_ms, started), *_marks(run, started, seconds)]
    device = min(1.0, util * (1.0 if shared else run.share) * (1 - run.loading_s))
    series = _hardware(run, name, seconds_at, device, memory, generator, part=part)
    for code, (label, unit, scope, method, values) in enumerate(
        [*series, *_software(run, seconds_at, rate, generator)]
    ):
        fields = {"code": code, "name": label, "unit": unit, "scope": scope, "method": method}
        parts.append(encode_event({"event": "series", **fields}))
        steps = (seconds_at * rate / run.batch_size).astype(np.int64)
        times = ((seconds_at * 1000 + started) * 1000).astype(np.int64)
        numbers = steps.tolist() if scope == SampleScope.RUN else [NO_STEP] * len(times)
        parts.append(encode_samples([code] * len(times), times.tolist(), numbers, values.tolist()))
    code_of = {"completed": 0, "cancelled": None}.get(run.state, 1)
    end = {"state": run.state, "cause": run.cause, "exit_code": code_of, "exit_signal": None, "at": ended}
    parts.append(encode_event({"event": "end", **end}))
    parts.append(encode_event({"event": "moment", "moment": "flushed", "at": ended + 15}))
    return DemoRun(run=name, data=b"".join(parts)), seconds


def _events(run: _Run, name: str, at_ms: int, started: int) -> list[bytes]:
    about = {
        "run": name, "name": run.script, "experiment": run.experiment, "workload": run.workload, "letter": run.letter,
        "user": "mira", "host": HOST, "command": ["python", run.script, "--batch-size", str(run.batch_size)],
        "cwd": "/home/mira/resnet", "devices": ["0"], "collocation": run.collocation, "queued_at": at_ms,
        "params": {"batch-size": str(run.batch_size)}, "listeners": ["proc", "nvml"],
    }  # fmt: skip
    git = {"commit": "4f2d9c1e0b7a", "branch": "main", "is_dirty": False, "diff": ""}
    environment = {
        "git": git,
        "command": about["command"],
        "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
        "driver": _DRIVER,
        "cpu": "AMD EPYC 9554 64-Core Processor",
    }
    return [
        encode_event({"event": "run", **about}),
        encode_event({"event": "moment", "moment": "barrier", "at": at_ms + 30}),
        encode_event({"event": "moment", "moment": "running", "at": started}),
        *(
            encode_event({"event": "listener", "listener": listener, "state": "running"})
            for listener in ("proc", "nvml")
        ),
        encode_event({"event": "environment", **environment}),
    ]


def _marks(run: _Run, started: int, seconds: float) -> list[bytes]:
    """Epochs, and the validation at the end of each."""
    epoch_ms = seconds * 1000 / _EPOCHS / run.part
    events = []
    for epoch in range(int(_EPOCHS * run.part)):
        begin = started + int(epoch * epoch_ms)
        end = started + int((epoch + 1) * epoch_ms)
        validation = end - int(0.08 * epoch_ms)
        for kind, name, at in (("epoch", str(epoch), begin), ("phase", "validation", validation)):
            events.append(encode_event({"event": "mark", "kind": kind, "name": name, "at": at}))
        events.append(encode_event({"event": "mark", "kind": "phase_end", "name": "validation", "at": end}))
    return events


_Series = tuple[str, str | None, SampleScope, SampleMethod, Float64s]


def _hardware(
    run: _Run,
    name: str,
    seconds_at: Float64s,
    util: float,
    memory: float,
    generator: np.random.Generator,
    *,
    part: float,
) -> Sequence[_Series]:
    shared = part < 1
    count = len(seconds_at)
    warm = 1 - np.exp(-seconds_at / 3.0)  # data loaders and kernels take a few seconds
    busy = np.clip(util * warm + generator.normal(0, 0.02, count), 0, 1)
    watts = _IDLE_WATTS + (_LIMIT_WATTS - _IDLE_WATTS) * 0.88 * busy + generator.normal(0, 6, count)
    method = SampleMethod.ESTIMATED if shared else SampleMethod.MEASURED
    gpu, process_unit = f"{HOST}:0", f"run:{name}/{HOST}:0"
    measured = SampleMethod.MEASURED
    cores = np.clip(1.1 - 0.5 * run.loading_s + generator.normal(0, 0.05, count), 0, None)
    return [
        ("gpu_util_ratio", gpu, SampleScope.DEVICE, measured, busy),
        ("power_watts", gpu, SampleScope.DEVICE, measured, watts),
        (
            "memory_used_bytes",
            gpu,
            SampleScope.DEVICE,
            measured,
            memory * (2 if shared else 1) * np.minimum(1, warm * 2),
        ),
        ("energy_joules", gpu, SampleScope.DEVICE, measured, 1e6 + np.cumsum(watts)),
        ("energy_joules", process_unit, SampleScope.PROCESS, method, np.cumsum(watts) * part),
        ("memory_used_bytes", process_unit, SampleScope.PROCESS, measured, memory * np.minimum(1, warm * 2)),
        ("process_cpu_cores", None, SampleScope.TREE, measured, cores),
        ("process_memory_bytes", None, SampleScope.TREE, measured, 3.1e9 + 4e8 * warm),
    ]


def _software(run: _Run, seconds_at: Float64s, rate: float, generator: np.random.Generator) -> Sequence[_Series]:
    done = seconds_at * rate
    count = len(seconds_at)
    noise = generator.normal(0, 0.05, count) * np.exp(-done / 60_000) * np.sqrt(256 / run.batch_size)
    loss = 0.35 + 1.95 * np.exp(-done / (28_000 + 20 * run.batch_size)) + noise
    accuracy = np.clip(0.93 - 0.83 * np.exp(-done / 35_000) + generator.normal(0, 0.006, count), 0, 1)
    scope_and_method = (SampleScope.RUN, SampleMethod.MEASURED)
    return [
        ("loss", None, *scope_and_method, loss),
        ("accuracy", None, *scope_and_method, accuracy),
        ("samples", None, *scope_and_method, done),
    ]
