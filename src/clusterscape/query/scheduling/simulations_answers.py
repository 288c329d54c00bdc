"""The shapes of questions and answers about simulated job traces. Times are seconds, sizes the trace's unit, missing is null."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from clusterscape.analyze.jobs.distributions import ValueSpread
from clusterscape.model.identity_fields import PublicText, ScopedText, access_checked
from clusterscape.model.jobs import CleaningNote, SizeUnit
from clusterscape.query.bounds import ItemId, Name

MOST_CHOICES = 24
MOST_JITTER = 50

Relaxation = Annotated[float, Field(ge=0, le=10)]

SimulationState = Literal["running", "done", "failed", "stopped"]
EstimatesWord = Literal["request", "actual", "predicted"]


@access_checked("simulation")
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationAsk:
    """Every policy with every backfilling on one trace. ``processors``: the machine's size; null: as the trace says.

    ``estimates``: what the scheduler takes run times for; predicted: from the user's last two runs. ``omegas``: by which share
    relaxed ways may delay a promise, each of them tried. ``whole_at``: the queue length at which adaptive relaxation is
    whole. ``jitter``: runs with run times ±1 s, which give the intervals.
    """

    trace: ItemId
    policies: Annotated[list[Name], Field(max_length=MOST_CHOICES)] = field(default_factory=lambda: ["fcfs"])
    backfills: Annotated[list[Name], Field(max_length=MOST_CHOICES)] = field(default_factory=lambda: ["easy"])
    semantics: Name = "clusterscape"
    estimates: EstimatesWord = "request"
    omegas: Annotated[list[Relaxation], Field(max_length=MOST_CHOICES)] = field(default_factory=lambda: [0.1])
    whole_at: Annotated[float, Field(ge=0, le=1e9)] = 150.0
    processors: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    jitter: Annotated[int, Field(ge=0, le=MOST_JITTER)] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JitteredMeasure:
    """A measure of the trace as it is, and over the jittered runs: mean, standard deviation, middle 95 %."""

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
    """Means over the bins that begin at ``start_s + i · step_s``."""

    start_s: float
    step_s: float
    busy_units: list[float]
    waiting_jobs: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJobs:
    """Every job of a small trace, to be drawn as a Gantt chart; ``lane``: the lowest of the units it holds."""

    job: list[ScopedText]
    submit_s: list[int]
    start_s: list[int]
    end_s: list[int]
    units: list[int]
    lane: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSize:
    """Waits of the jobs of ``low`` to ``high`` units, beside first come, first served with the same backfilling.

    ``is_starved``: the 99th percentile is twice and an hour longer. The references are null where that is the policy.
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
    """One policy with one backfilling. ``jobs`` is null where there are too many to draw; ``fingerprint`` names the result.

    ``omega`` is null where nothing is relaxed.
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
class SimulationAnswer:
    """How far a simulation is and what is there of it. ``progress``: 0 to 1; ``problem``: why it failed; ``asked``: the question.

    ``choices`` come one by one, in the order asked. ``notes``: what was left out or changed to simulate the trace.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """What can be chosen; ``relaxed``: the ways of backfilling that take a factor; ``placements``: of simulations on nodes."""

    policies: list[PublicText]
    backfills: list[PublicText]
    placements: list[PublicText]
    relaxed: list[PublicText]
    semantics: list[PublicText]
    estimates: list[PublicText]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRow:
    """A result that is kept; ``asked`` is its question."""

    simulation: PublicText
    made_at: int
    trace: ScopedText
    asked: SimulationAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationList:
    """Kept results, the newest first."""

    simulations: list[SimulationRow]
