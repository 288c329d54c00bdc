"""Key figures of a run, updated as samples arrive: statistics of each series, energy, work done. Pure.

Lists and comparisons of runs use these instead of reading samples.
"""

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clusterscape.ingest.run_pieces import RunSamples
from clusterscape.model.run_frames import NO_STEP, SampleMethod, SampleScope
from clusterscape.model.runs import RunEnergy, RunFigures, RunMoments, RunWork, SeriesFigures, StepFigures

MOST_RESULTS = 64
"""Limit of the script's own metrics in the summary."""
SAMPLES_METRIC = "samples"
"""The metric by which a script logs the number of samples trained so far."""
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
_ENOUGH = 3  # fewest samples of a counter to compute its rate; else the rate over the whole run is used


def note_figures(samples: RunSamples, figures: Mapping[str, SeriesFigures]) -> None:
    """Add the finite samples of a piece to the figures of their series."""
    finite = np.flatnonzero(samples.is_finite)
    if not len(finite):
        return
    order = finite[np.argsort(samples.series[finite], kind="stable")]
    places, starts = np.unique(samples.series[order], return_index=True)
    for place, rows in zip(places.tolist(), np.split(order, starts[1:]), strict=True):
        name, unit = samples.names[place]
        series = figures.get(f"{unit} {name}")
        if series is not None:
            _add(series, samples.time_ms[rows], samples.value[rows])


def _add(series: SeriesFigures, times_ms: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Add finite samples, in the order of their times."""
    low, high = float(values.min()), float(values.max())
    series.low = low if not series.count else min(series.low, low)
    series.high = high if not series.count else max(series.high, high)
    if not series.count:
        series.first, series.first_ms = float(values[0]), int(times_ms[0])
    series.last, series.last_ms = float(values[-1]), int(times_ms[-1])
    series.count += len(values)
    series.total += float(values.sum())


def note_steps(samples: RunSamples, before: StepFigures | None) -> StepFigures | None:
    """The range of steps, extended by a piece."""
    step, time_ms = samples.step, samples.time_ms
    with_step = np.flatnonzero(step != NO_STEP)
    if not len(with_step):
        return before
    lowest, highest = with_step[np.argmin(step[with_step])], with_step[np.argmax(step[with_step])]
    here = StepFigures(int(step[lowest]), int(step[highest]), int(time_ms[lowest]), int(time_ms[highest]))
    if before is None:
        return here
    begin = before if before.first <= here.first else here
    end = before if before.last >= here.last else here
    return StepFigures(begin.first, end.last, begin.first_ms, end.last_ms)


def compute_figures(
    series: Mapping[str, SeriesFigures],
    steps: StepFigures | None,
    params: Mapping[str, str],
    moments: RunMoments,
    *,
    run: str,
) -> RunFigures:
    """Energy with scope and method, means and peaks, work done, and last values of the script's metrics."""
    sampled = {key: figures for key, figures in series.items() if figures.count}
    own = f"run:{run}"
    tree = sampled.get(f"{own} process_memory_bytes")
    cores = sampled.get(f"{own} process_cpu_cores")
    return RunFigures(
        energy=_energy(sampled),
        cpu_joules=_sum([figures.last for key, figures in sampled.items() if key.endswith(" cpu_energy_joules")]),
        work=_work(sampled, steps, params, moments, own),
        gpu_util_ratio=_mean([device.total / device.count for device in _devices(sampled, "gpu_util_ratio")]),
        power_watts=_sum([device.total / device.count for device in _devices(sampled, "power_watts")]),
        memory_peak_bytes=_sum([device.high for device in _devices(sampled, "memory_used_bytes")]),
        cpu_cores=None if cores is None else cores.mean,
        process_memory_peak_bytes=None if tree is None else tree.high,
        results=_results(sampled, own),
    )


def _devices(series: Mapping[str, SeriesFigures], metric: str) -> list[SeriesFigures]:
    """Figures of a metric of whole GPUs, one per GPU."""
    return [
        figures for key, figures in series.items() if figures.scope == SampleScope.DEVICE and key.endswith(f" {metric}")
    ]


def _energy(series: Mapping[str, SeriesFigures]) -> RunEnergy | None:
    """The run's own share of its GPUs' energy if reported, else that of the whole GPUs."""
    energy = [figures for key, figures in series.items() if key.endswith(" energy_joules")]
    parts = [figures for figures in energy if figures.scope == SampleScope.PROCESS]
    if parts:
        is_estimated = any(figures.method == SampleMethod.ESTIMATED for figures in parts)
        method = SampleMethod.ESTIMATED if is_estimated else SampleMethod.MEASURED
        return RunEnergy(
            joules=sum(figures.last for figures in parts), scope=SampleScope.PROCESS.value, method=method.value
        )
    rises = [figures.last - figures.first for figures in energy if figures.scope == SampleScope.DEVICE]
    if not rises or min(rises) < 0:  # the counter was reset: the driver was reloaded
        return None
    return RunEnergy(joules=sum(rises), scope=SampleScope.DEVICE.value, method=SampleMethod.MEASURED.value)


def _work(
    series: Mapping[str, SeriesFigures],
    steps: StepFigures | None,
    params: Mapping[str, str],
    moments: RunMoments,
    own: str,
) -> RunWork | None:
    """The amount of work, its rate, and the metric that both come from."""
    counter = series.get(f"{own} {SAMPLES_METRIC}")
    if counter is not None and counter.last > 0:
        rate = _rate(counter.first, counter.last, counter.first_ms, counter.last_ms, counter.count)
        if rate is None and (running_s := _running_s(moments)):
            rate = counter.last / running_s
        return RunWork(amount=counter.last, per_second=rate, unit="samples", basis=SAMPLES_METRIC)
    for name in RATE_METRICS:
        rates = series.get(f"{own} {name}")
        if rates is not None:
            return RunWork(amount=None, per_second=rates.mean, unit=name.partition("_")[0], basis=name)
    if steps is None or steps.last <= steps.first:
        return None
    per_second = _rate(steps.first, steps.last, steps.first_ms, steps.last_ms, _ENOUGH)
    batch = next((float(params[name]) for name in BATCH_PARAMS if _is_count(params.get(name))), None)
    done = float(steps.last - steps.first + 1)
    if batch is None or per_second is None:
        return RunWork(amount=done, per_second=per_second, unit="steps", basis="steps")
    return RunWork(amount=done * batch, per_second=per_second * batch, unit="samples", basis="steps × batch size")


def _running_s(moments: RunMoments) -> float | None:
    if moments.running is None or moments.ended is None:
        return None
    return (moments.ended - moments.running) / 1000


def _rate(first: float, last: float, first_ms: int, last_ms: int, count: int) -> float | None:
    if count < _ENOUGH or last_ms <= first_ms or last <= first:
        return None
    return (last - first) / (last_ms - first_ms) * 1000


def _results(series: Mapping[str, SeriesFigures], own: str) -> dict[str, float]:
    """The last values of the script's metrics, by name."""
    logged = [
        (key.removeprefix(f"{own} "), figures.last)
        for key, figures in series.items()
        if figures.scope == SampleScope.RUN and key.startswith(f"{own} ")
    ]
    return dict(logged[:MOST_RESULTS])


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None


def _is_count(text: str | None) -> bool:
    return text is not None and _COUNT.fullmatch(text) is not None
