"""What a run comes to in numbers, kept up while its samples arrive: statistics of each series, energy, work done. Pure.

Lists, comparisons and workloads are answered from these, without reading a sample again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.run_samples import RunSamples
from clusterscape.model.run_frames import NO_STEP, SampleMethod, SampleScope

MOST_RESULTS = 64
"""Of the script's own metrics, in the small document."""
SAMPLES_METRIC = "samples"
"""What a script calls the number of samples it has trained on so far."""
RATE_METRICS = (
    "samples_per_second",
    "samples_per_sec",
    "samples/s",
    "throughput",
    "images_per_second",
    "tokens_per_second",
)
BATCH_PARAMS = ("batch-size", "batch_size", "batchsize", "bs")
_COUNT = re.compile(r"0*[1-9][0-9]{0,8}")
_ENOUGH = 3  # samples of a counter, for the time between them to say more than the whole run's


@dataclass(slots=True)
class SeriesFigures:
    """One series: what it stands for, and what its finite samples come to. ``joules`` and other counters rise: last − first."""

    scope: str | None = None
    method: str | None = None
    count: int = 0
    total: float = 0.0
    low: float = 0.0
    high: float = 0.0
    first: float = 0.0
    last: float = 0.0
    first_ms: int = 0
    last_ms: int = 0

    @classmethod
    def of(cls, body: object) -> "SeriesFigures":
        """As ``body`` wrote it."""
        return cls(*body) if isinstance(body, list) else cls()

    def body(self) -> list[object]:
        """As a document has it."""
        return [getattr(self, name) for name in self.__dataclass_fields__]

    @property
    def mean(self) -> float | None:
        """None without samples."""
        return self.total / self.count if self.count else None

    def add(self, times_ms: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Finite samples, in the order of their times."""
        low, high = float(values.min()), float(values.max())
        self.low = low if not self.count else min(self.low, low)
        self.high = high if not self.count else max(self.high, high)
        if not self.count:
            self.first, self.first_ms = float(values[0]), int(times_ms[0])
        self.last, self.last_ms = float(values[-1]), int(times_ms[-1])
        self.count += len(values)
        self.total += float(values.sum())


@dataclass(frozen=True, slots=True)
class StepFigures:
    """From the first to the last step that was told, and when each was first told."""

    first: int
    last: int
    first_ms: int
    last_ms: int

    @classmethod
    def of(cls, body: object) -> "StepFigures | None":
        """As ``body`` wrote it."""
        return cls(*body) if isinstance(body, list) else None

    def body(self) -> list[int]:
        """As a document has it."""
        return [self.first, self.last, self.first_ms, self.last_ms]


def note_figures(samples: RunSamples, figures: Mapping[str, SeriesFigures]) -> None:
    """Add the finite samples of a piece to the figures of their series."""
    finite = np.flatnonzero(samples.is_finite)
    if not len(finite):
        return
    order = finite[np.argsort(samples.series[finite], kind="stable")]
    places, starts = np.unique(samples.series[order], return_index=True)
    for place, rows in zip(places.tolist(), np.split(order, starts[1:]), strict=True):
        name, unit = samples.names[place]
        known = figures.get(f"{unit} {name}")
        if known is not None:
            known.add(samples.time_ms[rows], samples.value[rows])


def note_steps(samples: RunSamples, known: StepFigures | None) -> StepFigures | None:
    """The range of steps, one piece further."""
    step, time_ms = samples.step, samples.time_ms
    told = np.flatnonzero(step != NO_STEP)
    if not len(told):
        return known
    lowest, highest = told[np.argmin(step[told])], told[np.argmax(step[told])]
    here = StepFigures(int(step[lowest]), int(step[highest]), int(time_ms[lowest]), int(time_ms[highest]))
    if known is None:
        return here
    begin = known if known.first <= here.first else here
    end = known if known.last >= here.last else here
    return StepFigures(begin.first, end.last, begin.first_ms, end.last_ms)


def figures_of(
    series: Mapping[str, SeriesFigures],
    steps: StepFigures | None,
    params: Mapping[str, str],
    moments: Mapping[str, int],
    *,
    run: str,
) -> dict[str, object]:
    """The numbers of a list: energy with scope and method, means and peaks, work done, and last values by name."""
    told = {key: one for key, one in series.items() if one.count}
    own = f"run:{run}"
    found: dict[str, object] = {
        "energy": _energy(told),
        "cpu_joules": _sum([one.last for key, one in told.items() if key.endswith(" cpu_energy_joules")]),
        "work": _work(told, steps, params, moments, own),
        "results": _results(told, own),
    }
    for name, metric, kind in (
        ("gpu_util_ratio", "gpu_util_ratio", "mean"),
        ("power_watts", "power_watts", "mean"),
        ("memory_peak_bytes", "memory_used_bytes", "peak"),
    ):
        devices = [one for key, one in told.items() if one.scope == SampleScope.DEVICE and key.endswith(f" {metric}")]
        found[name] = _joined(devices, kind, adds=metric != "gpu_util_ratio")
    found["cpu_cores"] = _mean(told.get(f"{own} process_cpu_cores"))
    tree = told.get(f"{own} process_memory_bytes")
    found["process_memory_peak_bytes"] = tree.high if tree else None
    return found


def _energy(series: Mapping[str, SeriesFigures]) -> dict[str, object] | None:
    """The run's own part of its GPUs' energy where it was told, else that of the whole GPUs."""
    energy = [one for key, one in series.items() if key.endswith(" energy_joules")]
    parts = [one for one in energy if one.scope == SampleScope.PROCESS]
    if parts:
        is_guess = any(one.method == SampleMethod.ESTIMATED for one in parts)
        method = SampleMethod.ESTIMATED if is_guess else SampleMethod.MEASURED
        return {"joules": sum(one.last for one in parts), "scope": SampleScope.PROCESS, "method": method}
    wholes = [one for one in energy if one.scope == SampleScope.DEVICE]
    rises = [one.last - one.first for one in wholes]
    if not rises or min(rises) < 0:  # the driver was loaded anew: the difference says nothing
        return None
    return {"joules": sum(rises), "scope": SampleScope.DEVICE, "method": SampleMethod.MEASURED}


def _work(
    series: Mapping[str, SeriesFigures],
    steps: StepFigures | None,
    params: Mapping[str, str],
    moments: Mapping[str, int],
    own: str,
) -> dict[str, object] | None:
    """How much was done and how fast, and what that is known from."""
    running_s = (moments["ended"] - moments["running"]) / 1000 if {"ended", "running"} <= moments.keys() else None
    counter = series.get(f"{own} {SAMPLES_METRIC}")
    if counter is not None and counter.last > 0:
        rate = _rate(counter.first, counter.last, counter.first_ms, counter.last_ms, counter.count)
        rate = rate if rate is not None else counter.last / running_s if running_s else None
        return {"amount": counter.last, "per_second": rate, "unit": "samples", "basis": SAMPLES_METRIC}
    for name in RATE_METRICS:
        told = series.get(f"{own} {name}")
        if told is not None:
            return {"amount": None, "per_second": told.mean, "unit": name.partition("_")[0], "basis": name}
    if steps is not None and steps.last > steps.first:
        per_second = _rate(steps.first, steps.last, steps.first_ms, steps.last_ms, _ENOUGH)
        batch = next((float(params[name]) for name in BATCH_PARAMS if _is_count(params.get(name))), None)
        done = float(steps.last - steps.first + 1)
        if batch is None or per_second is None:
            return {"amount": done, "per_second": per_second, "unit": "steps", "basis": "steps"}
        rate = per_second * batch
        return {"amount": done * batch, "per_second": rate, "unit": "samples", "basis": "steps × batch size"}
    return None


def _rate(first: float, last: float, first_ms: int, last_ms: int, count: int) -> float | None:
    if count < _ENOUGH or last_ms <= first_ms or last <= first:
        return None
    return (last - first) / (last_ms - first_ms) * 1000


def _results(series: Mapping[str, SeriesFigures], own: str) -> dict[str, float]:
    """The last values of what the script said, by name."""
    said = [(key, one) for key, one in series.items() if one.scope == SampleScope.RUN and key.startswith(f"{own} ")]
    return {key.removeprefix(f"{own} "): one.last for key, one in said[:MOST_RESULTS]}


def _joined(devices: list[SeriesFigures], kind: str, *, adds: bool) -> float | None:
    """Of several GPUs: watts and bytes add up, utilization is their mean."""
    values = [one.high if kind == "peak" else one.total / one.count for one in devices]
    if not values:
        return None
    return sum(values) if adds else sum(values) / len(values)


def _mean(one: SeriesFigures | None) -> float | None:
    return one.mean if one is not None else None


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None


def _is_count(text: str | None) -> bool:
    return text is not None and _COUNT.fullmatch(text) is not None
