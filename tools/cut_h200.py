"""Extracts the shapes of the demo cluster (``demo/shapes/h200.csv``) from the recorded telemetry of one H200.

Reads a folder with ``telemetry.csv`` (nvidia-smi at 5 Hz) and ``events.jsonl`` (phases of the training processes).
"""

import argparse
import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

DEFAULT_OUTPUT = Path(__file__).parents[1] / "src" / "clusterscape" / "demo" / "shapes" / "h200.csv"
HEADER = (
    "mode",
    "phase",
    "util_percent",
    "memory_util_percent",
    "power_watts",
    "gpu_celsius",
    "memory_celsius",
    "sm_mhz",
)
IDLE_CLOCK_MHZ = 345
CONTEXT_MEMORY_MIB = 500  # more than this at zero utilization: a process has opened the GPU but computes nothing
SETTLE_S = 3.0  # warm-up after a start, left out as in the recording's own summary


@dataclass(frozen=True)
class Reading:
    """One line of nvidia-smi."""

    time_s: float
    util_percent: int
    memory_util_percent: int
    memory_used_mib: int
    power_watts: float
    gpu_celsius: int
    memory_celsius: int
    sm_mhz: int


@dataclass(frozen=True)
class Stage:
    """The phase of the training process of ``mode`` from ``time_s`` on."""

    time_s: float
    mode: str
    phase: str


def read_readings(path: Path) -> list[Reading]:
    """The recorded telemetry in order of time."""
    readings = []
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, skipinitialspace=True):
            time = datetime.strptime(row["timestamp"], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC)
            readings.append(
                Reading(
                    time_s=time.timestamp(),
                    util_percent=int(row["utilization.gpu [%]"]),
                    memory_util_percent=int(row["utilization.memory [%]"]),
                    memory_used_mib=int(row["memory.used [MiB]"]),
                    power_watts=float(row["power.draw.instant [W]"]),
                    gpu_celsius=int(row["temperature.gpu"]),
                    memory_celsius=int(row["temperature.memory"]),
                    sm_mhz=int(row["clocks.current.sm [MHz]"]),
                )
            )
    return readings


def read_stages(path: Path) -> list[Stage]:
    """The phases of the training processes, without single steps."""
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Stage(event["t"], event["mode"], event["phase"]) for event in events if event["phase"] != "step"]


def cut(readings: list[Reading], stages: list[Stage]) -> Iterator[tuple[str, str, Reading]]:
    """Yield (mode, phase, reading) of every selected sample, by mode."""
    first_start_s = stages[0].time_s
    for reading in readings:
        if reading.sm_mhz == IDLE_CLOCK_MHZ and reading.util_percent == 0:
            yield "idle", "idle", reading
    for reading in readings:
        is_held = reading.memory_used_mib > CONTEXT_MEMORY_MIB and reading.util_percent == 0
        if is_held and reading.time_s < first_start_s:
            yield "context", "context", reading
    for mode in ("healthy", "inputbound"):
        start_s, end_s = (_time_of(stages, mode, phase) for phase in ("start", "end"))
        yield from ((mode, "train", reading) for reading in _between(readings, start_s + SETTLE_S, end_s))
    hang_s, end_s = (_time_of(stages, "hang", phase) for phase in ("hang", "end"))
    yield from (("hang", "hang", reading) for reading in _between(readings, hang_s + SETTLE_S, end_s))
    yield from _cut_cycles(readings, stages)


def _cut_cycles(readings: list[Reading], stages: list[Stage]) -> Iterator[tuple[str, str, Reading]]:
    """The mixed run from its first to its last validation: whole cycles, so that it can be repeated seamlessly."""
    mixed = [stage for stage in stages if stage.mode == "mixed"]
    validations = [index for index, stage in enumerate(mixed) if stage.phase == "validation"]
    for stage, following in pairwise(mixed[validations[0] : validations[-1] + 1]):
        yield from (("mixed", stage.phase, reading) for reading in _between(readings, stage.time_s, following.time_s))


def _time_of(stages: list[Stage], mode: str, phase: str) -> float:
    return next(stage.time_s for stage in stages if (stage.mode, stage.phase) == (mode, phase))


def _between(readings: list[Reading], start_s: float, end_s: float) -> list[Reading]:
    return [reading for reading in readings if start_s <= reading.time_s < end_s]


def main() -> None:
    """Read, cut, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder with telemetry.csv and events.jsonl")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    arguments = parser.parse_args()
    readings = read_readings(arguments.source / "telemetry.csv")
    stages = read_stages(arguments.source / "events.jsonl")
    with arguments.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for mode, phase, reading in cut(readings, stages):
            writer.writerow((mode, phase, *(getattr(reading, column) for column in HEADER[2:])))
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
