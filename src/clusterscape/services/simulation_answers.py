"""The shapes of requests and answers of the simulator. Times are seconds, sizes are in the trace's unit, missing is null."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from clusterscape.analyze.jobs.distributions import ValueSpread
from clusterscape.model.identity_fields import PublicText, ScopedText, access_checked
from clusterscape.model.jobs import CleaningNote, SizeUnit
from clusterscape.query.bounds import ItemId, Name

MAX_CHOICES = 24
MAX_JITTER = 50

Relaxation = Annotated[float, Field(ge=0, le=10)]

SimulationState = Literal["running", "done", "failed", "stopped"]
EstimatesWord = Literal["request", "actual", "predicted", "boosted", "elapsed-aware"]


@access_checked("simulation")
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationAsk:
    """A request to simulate every policy with every backfilling on one trace. ``processors``: cluster size; null: the trace's.

    ``estimates``: the run times that the scheduler assumes; predicted: from the user's last two runs; boosted and
    elapsed-aware: from models trained on the jobs that had ended by then. ``omegas``: the shares by
    which relaxed backfilling may delay a promise, each of them simulated. ``whole_at``: the queue length at which adaptive
    relaxation is full. ``jitter``: number of runs with run times ±1 s, from which the intervals are computed.
    """

    trace: ItemId
    policies: Annotated[list[Name], Field(max_length=MAX_CHOICES)] = field(default_factory=lambda: ["fcfs"])
    backfills: Annotated[list[Name], Field(max_length=MAX_CHOICES)] = field(default_factory=lambda: ["easy"])
    semantics: Name = "clusterscape"
    estimates: EstimatesWord = "request"
    omegas: Annotated[list[Relaxation], Field(max_length=MAX_CHOICES)] = field(default_factory=lambda: [0.1])
    whole_at: Annotated[float, Field(ge=0, le=1e9)] = 150.0
    processors: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    jitter: Annotated[int, Field(ge=0, le=MAX_JITTER)] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JitteredMeasure:
    """A measure of the unchanged trace, and over the jittered runs: mean, standard deviation, middle 95 %."""

    name: PublicText
    title: PublicText
    unit: PublicText
    value: float | None
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCourse:
    """Means over bins that start at ``start_s + i · step_s``."""

    start_s: float
    step_s: float
    busy_units: list[float]
    waiting_jobs: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJobs:
    """Every job of a small trace, for a Gantt chart; ``lane``: the lowest unit that it is drawn on."""

    job: list[ScopedText]
    submit_s: list[int]
    start_s: list[int]
    end_s: list[int]
    units: list[int]
    lane: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSize:
    """Waits of the jobs of ``low`` to ``high`` units, compared with first come, first served with the same backfilling.

    ``is_starved``: the 99th percentile is at least twice as long and an hour longer. References are null if the policy is FCFS.
    """

    low: int
    high: int
    jobs: int
    p99_wait_s: float
    max_wait_s: float
    reference_p99_s: float | None
    reference_max_s: float | None
    is_starved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedChoice:
    """One policy with one backfilling. ``jobs`` is null if there are too many to draw; ``fingerprint`` identifies the result.

    ``omega`` is null if the backfilling is not relaxed.
    """

    policy: PublicText
    backfill: PublicText
    omega: float | None
    fingerprint: PublicText
    measures: list[JitteredMeasure]
    wait_s: ValueSpread
    sizes: list[SimulatedSize]
    course: SimulatedCourse
    jobs: SimulatedJobs | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedChoice:
    """What was published about first come, first served with this backfilling on the same trace. Times in seconds."""

    title: PublicText
    backfill: PublicText
    wait_s: float
    bounded_slowdown: float
    utilization_ratio: float
    violation_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationAnswer:
    """The state and results of a simulation. ``progress``: 0–1; ``problem``: why it failed; ``asked``: the request.

    ``choices`` are added one by one, in the order of the request. ``notes``: jobs that were excluded or changed.
    ``published``: known results about this trace, found by its name.
    """

    simulation: PublicText
    asked: SimulationAsk
    made_at: int
    state: SimulationState
    progress: float
    trace: ScopedText
    size_unit: SizeUnit
    processors: int
    simulated_jobs: int
    jitter: int
    semantics: PublicText
    epoch_s: float | None
    choices: list[SimulatedChoice]
    notes: list[CleaningNote]
    problem: ScopedText | None
    published: list[PublishedChoice] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """The available options; ``relaxed``: backfillings that take a factor; ``placements``: for simulations with nodes."""

    policies: list[PublicText]
    backfills: list[PublicText]
    placements: list[PublicText]
    relaxed: list[PublicText]
    semantics: list[PublicText]
    estimates: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRow:
    """A stored result; ``asked``: its request."""

    simulation: PublicText
    made_at: int
    trace: ScopedText
    asked: SimulationAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationList:
    """Stored results, newest first."""

    simulations: list[SimulationRow]
