"""The shapes of questions and answers about simulated job traces. Times are seconds, sizes the trace's unit, missing is null."""

from dataclasses import dataclass, field
from typing import Literal

from clusterscape.analyze.jobs.distributions import ValueSpread
from clusterscape.model.jobs import CleaningNote, SizeUnit

SimulationState = Literal["running", "done", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationAsk:
    """Every policy with every backfilling on one trace. ``processors``: the machine's size; null: as the trace says.

    ``jitter``: runs with run times ±1 s, which give the intervals.
    """

    trace: str
    policies: list[str] = field(default_factory=lambda: ["fcfs"])
    backfills: list[str] = field(default_factory=lambda: ["easy"])
    semantics: str = "clusterscape"
    estimates: Literal["request", "actual"] = "request"
    processors: int | None = None
    jitter: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JitteredMeasure:
    """A measure of the trace as it is, and over the jittered runs: mean, standard deviation, middle 95 %."""

    name: str
    title: str
    unit: str
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

    job: list[str]
    submit_s: list[int]
    start_s: list[int]
    end_s: list[int]
    units: list[int]
    lane: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedChoice:
    """One policy with one backfilling. ``jobs`` is null where there are too many to draw; ``fingerprint`` names the result."""

    policy: str
    backfill: str
    fingerprint: str
    measures: list[JitteredMeasure]
    wait_s: ValueSpread
    course: SimulatedCourse
    jobs: SimulatedJobs | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationAnswer:
    """How far a simulation is and what is there of it. ``progress``: 0 to 1; ``problem``: why it failed.

    ``choices`` come one by one, in the order asked. ``notes``: what was left out or changed to simulate the trace.
    """

    simulation: str
    state: SimulationState
    progress: float
    trace: str
    size_unit: SizeUnit
    processors: int
    simulated_jobs: int
    jitter: int
    semantics: str
    epoch_s: float | None
    choices: list[SimulatedChoice]
    notes: list[CleaningNote]
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """What can be chosen."""

    policies: list[str]
    backfills: list[str]
    semantics: list[str]
