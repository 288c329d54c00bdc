"""The shapes of answers about runs. Times are Unix ms, missing is null.

A *run workload* is what a plan calls a workload: runs that executed together. ``workload`` of a run is its own id among all
workloads of the site.
"""

from dataclasses import dataclass
from typing import Any

from clusterscape.analyze.runs.estimates import Estimate
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.runs import RunEnergy, RunListener, RunMark, RunWork


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """Seconds; null where a run has not come so far."""

    queued_s: float | None
    barrier_s: float | None
    running_s: float | None
    flush_s: float | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSlowdown:
    """How much longer the same work took than alone (1.3: 30 % longer), and what it took in joules against alone."""

    ratio: float
    energy_ratio: float | None
    basis: str  # "throughput" or "running time"
    baseline: list[str]  # the runs that ran alone


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list. ``workload`` is the id under which everything else of it is found."""

    run: str
    workload: str
    executed_with: str  # the run workload: id of its first run
    name: str | None
    experiment: str | None
    group: str | None  # the plan's name of the run workload
    letter: str | None
    user: str | None
    host: str | None
    state: str
    cause: str | None
    devices: list[str]
    device_type: str | None
    collocation: str | None
    params: dict[str, str]
    tags: dict[str, str]
    queued_at: int | None
    started_at: int | None
    ended_at: int | None
    times: RunTimes
    samples: int
    energy: RunEnergy | None
    cpu_joules: float | None  # of whole processor packages
    work: RunWork | None
    joules_per_work: float | None  # joules for one of work.unit
    slowdown: RunSlowdown | None
    gpu_util_ratio: float | None  # mean over time and GPUs
    power_watts: float | None  # mean, GPUs added up
    memory_peak_bytes: float | None  # of GPUs
    cpu_cores: float | None  # mean
    process_memory_peak_bytes: float | None
    results: dict[str, float]  # last values of the script's own metrics, at most 64


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunWorkload:
    """Runs that executed together, as one thing. ``repeats`` is the place in ``repeats`` of its experiment."""

    id: str
    experiment: str | None
    group: str | None
    host: str | None
    user: str | None
    state: str  # completed where every run is; else that of the first that is not
    collocation: str | None
    device_type: str | None
    runs: list[str]
    started_at: int | None
    ended_at: int | None
    makespan_s: float | None
    energy: RunEnergy | None
    per_second: float | None  # of all its runs together
    work_unit: str | None
    joules_per_work: float | None
    slowdown: float | None  # mean of its runs'
    fairness: float | None  # Jain's index of their progress against running alone


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRepeats:
    """Workloads that did the same again, with 95 % confidence intervals over them."""

    workloads: list[str]
    label: str
    makespan_s: Estimate | None
    joules: Estimate | None
    per_second: Estimate | None
    slowdown: Estimate | None
    fairness: Estimate | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunExperiment:
    """An experiment: its workloads, newest first, and their repeats. ``name`` is null for runs without one."""

    name: str | None
    runs: int
    last_at: int | None
    states: dict[str, int]
    workloads: list[RunWorkload]
    repeats: list[RunRepeats]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTree:
    """Experiments, newest first; ``rows`` holds the runs they name. ``left_out``: older runs beyond the limit."""

    experiments: list[RunExperiment]
    rows: list[RunRow]
    left_out: int


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetric:
    """One series of a run: ask for its samples by metric and unit. Statistics are of its finite samples."""

    metric: str
    unit: str
    place: str | None  # null: the run as a whole; else its rank, or the GPU or package
    scope: str | None
    method: str | None
    count: int
    mean: float | None
    low: float | None
    high: float | None
    first: float | None
    last: float | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """Everything of one run but its samples."""

    row: RunRow
    command: list[str]
    cwd: str | None
    listens_to: list[str]  # listeners it was started with, as `-l` takes them
    marks: list[RunMark]
    listeners: dict[str, RunListener]
    environment: dict[str, Any]
    exceptions: list[str]
    series: list[RunMetric]
    not_finite: int  # samples that were NaN or infinite, which the store does not hold
    dropped: int
    leftovers: int  # processes that outlived the run
    left_out: dict[str, int]  # what was more than the server keeps of one run, by kind


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetricName:
    """A metric that some of the runs have; ``scopes`` say what it can stand for."""

    metric: str
    scopes: list[str]
    runs: int
    unit: str | None  # its physical unit, where the catalogue knows the metric
    label: str | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetrics:
    """Metrics, epochs and phases that the runs asked about have."""

    metrics: list[RunMetricName]
    phases: list[str]
    has_steps: bool
    has_epochs: bool
