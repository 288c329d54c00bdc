"""A tracked run as it is stored: one record that lists are made of, and its detail. Writers and readers share these types.

Lenient: unknown fields are ignored, and those that earlier versions did not write have defaults. Needs no numpy.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct, field

from clusterscape.model.identity_fields import access_checked
from clusterscape.model.ids import WorkloadId
from clusterscape.model.run_units import run_unit

NAMES_KIND = "run-names"
"""Kind of the documents with the names of metrics that each user's runs have."""
DELETED_KIND = "run-deleted"
"""Kind of the documents that remember which runs were deleted."""


class RunInstance(Struct, omit_defaults=True):
    """A MIG instance that a run was given."""

    gpu: int
    instance: int
    profile: str | None = None
    uuid: str | None = None


class RunAbout(Struct, omit_defaults=True, kw_only=True):
    """What a run is, as its tracker describes it. ``workload`` is the plan's name of the runs that execute together."""

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


class RunEnd(Struct, omit_defaults=True, kw_only=True):
    """How a run ended; ``state`` is None while it goes on. ``is_closing``: reported by another process than its tracker."""

    state: str | None = None
    cause: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    at: int | None = None
    is_closing: bool = False


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """Joules of a run's GPUs. Scope ``process``: its own part of them; ``device``: all they used while it ran."""

    joules: float
    scope: str
    method: str  # "measured", or "estimated" where a GPU was shared


@access_checked("run")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """How much a run did and how fast; ``basis`` is the metric that says so, or ``steps``."""

    amount: float | None
    per_second: float | None
    unit: str
    basis: str


class RunFigures(Struct, omit_defaults=True, kw_only=True):
    """A run in numbers, computed while its samples arrive."""

    energy: RunEnergy | None = None
    cpu_joules: float | None = None  # of whole processor packages
    work: RunWork | None = None
    gpu_util_ratio: float | None = None  # mean over time and GPUs
    power_watts: float | None = None  # mean, GPUs added up
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

    @property
    def state(self) -> str:
        """How it ended, or how far it is."""
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


class RunFile(Struct, kw_only=True):
    """How much of a file of the run is stored, and the (metric, unit) that each code in its samples stands for."""

    offset: int = 0
    rank: int | None = None
    series: dict[int, tuple[str, str]] = {}


class RunDetail(Struct, omit_defaults=True, kw_only=True):
    """Everything of a run that lists do not show, except its samples.

    ``holds``: the unit that counts as held, by the unit that the run claims; None: stored before claims were checked.
    ``left_out``: how many were not kept, by what there was too much of.
    """

    series: dict[str, SeriesFigures] = {}  # by "unit metric"
    steps: StepFigures | None = None
    marks: list[RunMark] = []
    listeners: dict[str, RunListener] = {}
    environment: dict[str, Any] = {}  # open-ended: whatever the tracker describes, shown as it is
    exceptions: list[str | None] = []
    leftovers: int = 0
    holds: dict[str, str] | None = None
    files: dict[str, RunFile] = {}
    left_out: dict[str, int] = {}


class RunRecord(Struct, kw_only=True):
    """A run in the table of runs. ``owned_by`` is decided when it is created; events never change it.

    ``damage``: what is wrong with its stored summary, which then only says so. Treat it as frozen once it was written or read:
    readers share it.
    """

    run: str
    owned_by: str | None = None
    received_at: int | None = None  # its first piece, by the server's clock
    written_at: int = 0
    bytes: int = 0  # unpacked
    series_count: int = 0
    summary: RunSummary = field(default_factory=RunSummary)
    damage: str | None = None

    @property
    def workload(self) -> WorkloadId:
        """Its id among all workloads of the site."""
        return workload_id(self.run)


class StoredRun(Struct, kw_only=True):
    """A run with its detail. ``damage``: what is wrong with what is stored of it, record or detail."""

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
    """A run of which nothing is stored yet."""
    return StoredRun(record=RunRecord(run=run), detail=RunDetail(holds={}))


def workload_id(run: str) -> WorkloadId:
    """The id of a run among all workloads of the site."""
    return WorkloadId(run_unit(run))


_SUMMARY: msgspec.json.Decoder[RunSummary] = msgspec.json.Decoder(RunSummary)
_DETAIL: msgspec.json.Decoder[RunDetail] = msgspec.json.Decoder(RunDetail)


def decode_summary(text: str) -> tuple[RunSummary, str | None]:
    """The summary, and what is wrong with it: of a damaged one a summary that only says so."""
    try:
        return _SUMMARY.decode(text), None
    except (msgspec.DecodeError, RecursionError) as error:
        cause = f"its stored record is damaged: {error}"
        return RunSummary(end=RunEnd(state="unknown", cause=cause)), str(error)


def decode_detail(text: str) -> tuple[RunDetail, str | None]:
    """The detail, and what is wrong with it: of a damaged one an empty detail."""
    try:
        return _DETAIL.decode(text), None
    except (msgspec.DecodeError, RecursionError) as error:
        return RunDetail(holds={}), str(error)


def encode(part: RunSummary | RunDetail) -> str:
    """As JSON text. Numbers that JSON does not know (NaN, ±inf) become null."""
    return msgspec.json.encode(part).decode("utf-8")
