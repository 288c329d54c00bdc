"""The shapes of answers about runs. Times are Unix ms, missing is null.

A *run workload* is a workload of a plan: runs that executed together. ``workload`` of a run is the run's own id among all
workloads of the site.
"""

from dataclasses import dataclass
from typing import Any

from clusterscape.analyze.runs.lines import Estimate
from clusterscape.model.hangs import HangReport
from clusterscape.model.identity_fields import access_checked
from clusterscape.model.runs import RunEnergy, RunHang, RunListener, RunMark, RunWork


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """Durations of a run's stages in seconds; null for stages that it has not reached."""

    queued_s: float | None
    barrier_s: float | None
    running_s: float | None
    flush_s: float | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSlowdown:
    """The slowdown of a run compared with running alone (1.3: 30 % longer), and the same for its energy."""

    ratio: float
    energy_ratio: float | None
    basis: str  # "throughput" or "running time"
    baseline: list[str]  # the runs that ran alone


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list. ``workload`` is its id among all workloads of the site."""

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
    cpu_joules: float | None  # of whole CPU packages
    work: RunWork | None
    joules_per_work: float | None  # per work.unit
    slowdown: RunSlowdown | None
    gpu_util_ratio: float | None  # mean over time and GPUs
    power_watts: float | None  # mean, sum of all GPUs
    memory_peak_bytes: float | None  # of GPUs
    cpu_cores: float | None  # mean
    process_memory_peak_bytes: float | None
    results: dict[str, float]  # last values of the script's own metrics, at most 64


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunWorkload:
    """Runs that executed together."""

    id: str
    experiment: str | None
    group: str | None
    host: str | None
    user: str | None
    state: str  # completed if every run is; else the state of the first that is not
    collocation: str | None
    device_type: str | None
    runs: list[str]
    started_at: int | None
    ended_at: int | None
    makespan_s: float | None
    energy: RunEnergy | None
    per_second: float | None  # throughput of all its runs together
    work_unit: str | None
    joules_per_work: float | None
    slowdown: float | None  # mean of its runs'
    fairness: float | None  # Jain's index of their progress compared with running alone


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRepeats:
    """Run workloads that repeat each other, with means and 95 % confidence intervals."""

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
    """Experiments, newest first; ``rows``: their runs. ``left_out``: the number of older runs beyond the limit."""

    experiments: list[RunExperiment]
    rows: list[RunRow]
    left_out: int


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetric:
    """One series of a run, identified by metric and unit. Statistics are of its finite samples."""

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
    """One run with all details except its samples."""

    row: RunRow
    command: list[str]
    cwd: str | None
    listens_to: list[str]  # listeners it was started with, as in `-l`
    marks: list[RunMark]
    listeners: dict[str, RunListener]
    environment: dict[str, Any]
    exceptions: list[str]
    hangs: list[RunHang]  # oldest first
    series: list[RunMetric]
    not_finite: int  # samples that were NaN or infinite, which the store does not hold
    dropped: int
    leftovers: int  # processes that outlived the run
    left_out: dict[str, int]  # number of items beyond the limits per run, by kind


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetricName:
    """A metric that some of the runs have; ``scopes``: what it was measured of (process, device, …)."""

    metric: str
    scopes: list[str]
    runs: int
    unit: str | None  # its physical unit, if the metric is in the catalogue
    label: str | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetrics:
    """The metrics and phases of the requested runs, and whether they have steps and epochs."""

    metrics: list[RunMetricName]
    phases: list[str]
    has_steps: bool
    has_epochs: bool


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class HangAnswer:
    """Who hangs in the job that a run is part of, by the looks of all of its trackers.

    ``hosts``: those looked at; ``hosts_without_look``: those whose trackers have not reported one yet. ``report`` is null if the
    run was never looked at. ``went_on_at``: when it made steps again.
    """

    run: str
    workload: str
    runs: list[str]
    hosts: list[str]
    hosts_without_look: list[str]
    looked_at: int | None
    went_on_at: int | None
    report: HangReport | None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class HangRow:
    """A job that stopped making steps, by one of its runs."""

    run: str
    workload: str
    kind: str
    title: str
    place: str | None
    ranks: list[int]
    world_size: int | None
    held_gpus: int | None
    user: str | None
    name: str | None
    is_sure: bool  # more than slow, by what was read
    stalled_at: int
    looked_at: int
    went_on_at: int | None
    is_over: bool  # it made steps again, or ended


@dataclass(frozen=True, slots=True, kw_only=True)
class HangList:
    """Stalled jobs, newest first."""

    rows: list[HangRow]
