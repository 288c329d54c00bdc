"""A tracked run as it is stored: a record for lists, its detail, and the ids of the units of its samples. Writers and
readers share these.

``run:ID`` is the run as a whole, ``run:ID/rank1`` a rank, ``run:ID/HOST:0`` its processes' share of a GPU. A tracker's
measurements of a whole GPU, a MIG instance or a host are ``run:ID/at/UNIT``: a run never writes samples of the cluster's units.

Unknown fields are ignored, and fields that earlier versions did not write have defaults. Does not import numpy.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct, field

from clusterscape.model.identity_fields import access_checked
from clusterscape.model.ids import UnitId, WorkloadId

_PREFIX = "run:"
_MEASURED = "at/"


def is_run_unit(unit: str) -> bool:
    """Whether samples under this name were sent by a tracked run."""
    return unit.startswith(_PREFIX)


def run_of_unit(unit: str) -> str | None:
    """The id of the run that a unit belongs to; None for units of the cluster."""
    return unit.removeprefix(_PREFIX).partition("/")[0] if is_run_unit(unit) else None


def run_unit(run: str, part: str | None = None) -> UnitId:
    """The run as a whole, or a part of it (``rank1``)."""
    return UnitId(f"{_PREFIX}{run}" if part is None else f"{_PREFIX}{run}/{part}")


def measured_unit(run: str, unit: str) -> UnitId:
    """The unit id of the run's own measurements of a unit of the cluster."""
    return run_unit(run, f"{_MEASURED}{unit}")


def cluster_unit(unit: str) -> UnitId:
    """The unit of the cluster that a run measured; other units unchanged."""
    _, measured, name = unit.partition(f"/{_MEASURED}")
    return UnitId(name) if measured and is_run_unit(unit) else UnitId(unit)


def place_in_run(run: str, unit: str) -> str | None:
    """The part of a run that a unit denotes: a rank, a GPU or a host; None for the run as a whole."""
    if run_of_unit(unit) != run:
        return unit
    return unit.removeprefix(f"{_PREFIX}{run}").removeprefix("/").removeprefix(_MEASURED) or None


NAMES_KIND = "run-names"
"""Document kind: the metric names of each user's runs."""
DELETED_KIND = "run-deleted"
"""Document kind: deleted runs."""


class RunInstance(Struct, omit_defaults=True):
    """A MIG instance assigned to a run."""

    gpu: int
    instance: int
    profile: str | None = None
    uuid: str | None = None


class RunAbout(Struct, omit_defaults=True, kw_only=True):
    """What a run is, as its tracker describes it. ``workload`` names the runs of a plan that execute together."""

    run: str | None = None
    name: str | None = None
    experiment: str | None = None
    workload: str | None = None
    letter: str | None = None
    user: str | None = None
    host: str | None = None
    pid: int | None = None
    command: list[str] | None = None
    cwd: str | None = None
    devices: list[str] | None = None
    collocation: str | None = None
    profiler: str | None = None
    mig: list[RunInstance] | None = None
    queued_at: int | None = None
    listeners: list[str] | None = None


class RunMoments(Struct, omit_defaults=True, kw_only=True):
    """When each part of a run's life began, Unix ms; None: not yet."""

    queued: int | None = None
    barrier: int | None = None
    running: int | None = None
    ended: int | None = None
    flushed: int | None = None


class RunRanks(Struct, omit_defaults=True, kw_only=True):
    """The part of a distributed job that a tracker sees. ``job``: equal for all trackers of the job.

    ``stalled_at``: the first look at ranks that made no steps, ``looked_at`` the newest one; ``went_on_at``: when they made steps
    again.
    """

    job: str | None = None
    slurm_job: str | None = None
    world_size: int | None = None
    stalled_at: int | None = None
    looked_at: int | None = None
    went_on_at: int | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether it was looked at and has made no step since."""
        return self.looked_at is not None and (self.went_on_at is None or self.went_on_at < self.looked_at)


class RunEnd(Struct, omit_defaults=True, kw_only=True):
    """How a run ended; ``state`` is None while it runs. ``is_closing``: reported by another process than its tracker."""

    state: str | None = None
    cause: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    at: int | None = None
    is_closing: bool = False


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """Joules of a run's GPUs. Scope ``process``: its own share; ``device``: all that the GPUs used while it ran."""

    joules: float
    scope: str
    method: str  # "measured", or "estimated" where a GPU was shared


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """How much a run did and how fast; ``basis`` is the metric that measures it, or ``steps``."""

    amount: float | None
    per_second: float | None
    unit: str
    basis: str


class RunFigures(Struct, omit_defaults=True, kw_only=True):
    """Key figures of a run, updated as samples arrive."""

    energy: RunEnergy | None = None
    cpu_joules: float | None = None  # of entire CPU packages
    work: RunWork | None = None
    gpu_util_ratio: float | None = None  # mean over time and GPUs
    power_watts: float | None = None  # mean of the sum over GPUs
    memory_peak_bytes: float | None = None  # of GPUs
    cpu_cores: float | None = None  # mean
    process_memory_peak_bytes: float | None = None
    results: dict[str, float] | None = None  # last values of the script's own metrics


class RunSummary(Struct, omit_defaults=True, kw_only=True):
    """What lists of runs show."""

    about: RunAbout = field(default_factory=RunAbout)
    params: dict[str, str] = {}
    tags: dict[str, str] = {}
    moments: RunMoments = field(default_factory=RunMoments)
    end: RunEnd = field(default_factory=RunEnd)
    samples: int = 0
    not_finite: int = 0
    dropped: int = 0
    damaged: int = 0
    device_type: str | None = None
    figures: RunFigures | None = None
    ranks: RunRanks | None = None

    @property
    def state(self) -> str:
        """How it ended, or else ``waiting`` or ``running``."""
        return self.end.state or ("waiting" if self.moments.running is None else "running")


class SeriesFigures(Struct, array_like=True):
    """One series of a run: what it measures, and statistics of its finite samples. Stored as an array, in this order."""

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

    @property
    def mean(self) -> float | None:
        """None without samples."""
        return self.total / self.count if self.count else None


class StepFigures(Struct, array_like=True, frozen=True):
    """The first and the last step of a run's samples, and when each was first reported. Stored as an array."""

    first: int
    last: int
    first_ms: int
    last_ms: int


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """An epoch begins, or a phase begins or ends."""

    kind: str | None = None
    name: str | None = None
    at: int | None = None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunListener:
    """The last report of a listener."""

    listener: str | None = None
    state: str | None = None
    message: str | None = None
    at: int | None = None
    ticks: int | None = None
    missed: int | None = None


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunHang:
    """A verdict on a run that made no steps (``model/hangs.py``). ``ended_at``: when it made steps again."""

    kind: str
    title: str
    reason: str | None = None
    ranks: list[int] = dataclasses.field(default_factory=list)
    place: str | None = None
    group: str | None = None
    collective: str | None = None
    sequence: int | None = None
    since: int | None = None
    at: int | None = None
    ended_at: int | None = None
    certainty: str | None = None
    evidence: list[str] = dataclasses.field(default_factory=list)
    advice: str | None = None


class RunFile(Struct, kw_only=True):
    """How much of a run's file is stored, and the (metric, unit) of each code in its samples."""

    offset: int = 0
    rank: int | None = None
    series: dict[int, tuple[str, str]] = {}


class RunDetail(Struct, omit_defaults=True, kw_only=True):
    """Everything about a run that lists do not show, except its samples.

    ``holds``: the unit that counts as held, by the unit that the run claims; None: stored before claims were checked.
    ``left_out``: number of items beyond a limit that were not stored, by type.
    """

    series: dict[str, SeriesFigures] = {}  # by "unit metric"
    steps: StepFigures | None = None
    marks: list[RunMark] = []
    listeners: dict[str, RunListener] = {}
    environment: dict[str, Any] = {}  # free-form: what the tracker reports, shown unchanged
    exceptions: list[str | None] = []
    hangs: list[RunHang] = []
    ranks: list[int] = []
    looks: list[dict[str, Any]] = []  # the newest two at its ranks while it made no steps, as `write_plain` writes them
    leftovers: int = 0
    holds: dict[str, str] | None = None
    files: dict[str, RunFile] = {}
    left_out: dict[str, int] = {}


class RunRecord(Struct, kw_only=True):
    """A run in the table of runs. ``owned_by`` is decided when it is created; events never change it.

    ``damage``: why its stored summary cannot be read. Treat it as frozen once written or read: readers share it.
    """

    run: str
    owned_by: str | None = None
    received_at: int | None = None  # arrival of its first piece, by the server's clock
    written_at: int = 0
    bytes: int = 0  # uncompressed
    series_count: int = 0
    summary: RunSummary = field(default_factory=RunSummary)
    damage: str | None = None

    @property
    def workload(self) -> WorkloadId:
        """Its id among all workloads of the site."""
        return workload_id(self.run)


class StoredRun(Struct, kw_only=True):
    """A run with its detail. ``damage``: why its stored record or detail cannot be read."""

    record: RunRecord
    detail: RunDetail = field(default_factory=RunDetail)
    damage: str | None = None

    @property
    def run(self) -> str:
        """Its id."""
        return self.record.run

    @property
    def summary(self) -> RunSummary:
        """What lists show of it."""
        return self.record.summary


def new_run(run: str) -> StoredRun:
    """A run with nothing stored yet."""
    return StoredRun(record=RunRecord(run=run), detail=RunDetail(holds={}))


def workload_id(run: str) -> WorkloadId:
    """The id of a run among all workloads of the site."""
    return WorkloadId(run_unit(run))


_SUMMARY: msgspec.json.Decoder[RunSummary] = msgspec.json.Decoder(RunSummary)
_DETAIL: msgspec.json.Decoder[RunDetail] = msgspec.json.Decoder(RunDetail)


def decode_summary(text: str) -> tuple[RunSummary, str | None]:
    """The summary, and the error if it is damaged: then the summary contains only the error."""
    try:
        return _SUMMARY.decode(text), None
    except (msgspec.DecodeError, RecursionError) as error:
        cause = f"its stored record is damaged: {error}"
        return RunSummary(end=RunEnd(state="unknown", cause=cause)), str(error)


def decode_detail(text: str) -> tuple[RunDetail, str | None]:
    """The detail, and the error if it is damaged: then the detail is empty."""
    try:
        return _DETAIL.decode(text), None
    except (msgspec.DecodeError, RecursionError) as error:
        return RunDetail(holds={}), str(error)


def encode(part: RunSummary | RunDetail) -> str:
    """Encode as JSON. Numbers that JSON cannot represent (NaN, ±inf) become null."""
    return msgspec.json.encode(part).decode("utf-8")
