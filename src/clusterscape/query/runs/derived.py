"""Metrics that no listener reads: what a run's work cost over time, from its energy and from what tells its work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterscape.analyze.runs.efficiency import Total, add_up, compute_efficiency, total_of_rate
from clusterscape.analyze.runs.lines import Floats, Ints
from clusterscape.model.runs import StoredRun

ENERGY = "energy_joules"
STEP = "step"
SAMPLES = "samples"
JOULES_PER_WORK = "joules_per_work"
WORK_PER_SECOND = "work_per_second"
WORK_PER_SECOND_PER_WATT = "work_per_second_per_watt"
DERIVED = (JOULES_PER_WORK, WORK_PER_SECOND, WORK_PER_SECOND_PER_WATT)
_LABELS = {
    JOULES_PER_WORK: "Joules per {one}",
    WORK_PER_SECOND: "{many} per second",
    WORK_PER_SECOND_PER_WATT: "{many}/s per watt",
}
Pieces = Mapping[tuple[str, str], tuple[Ints, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSources:
    """The series that a run's work and energy are told by."""

    unit_of_work: str
    energy_units: Sequence[str]  # the run's own part of its GPUs, else whole GPUs
    metric: str
    unit: str
    is_rate: bool
    factor: float  # samples in a step

    @property
    def metrics(self) -> tuple[str, str]:
        """What must be read."""
        return (ENERGY, self.metric)

    @property
    def units(self) -> list[str]:
        """Of these units."""
        return [*self.energy_units, self.unit]


def find_sources(run: StoredRun) -> WorkSources | None:
    """None where a run does not report its work, or has no GPU whose energy is known."""
    figures = run.summary.figures
    work = None if figures is None else figures.work
    energy = [
        (unit, series.scope)
        for (unit, _, metric), series in ((key.partition(" "), series) for key, series in run.detail.series.items())
        if metric == ENERGY and series.count > 1
    ]
    if work is None or not energy:
        return None
    own = f"run:{run.run}"
    is_steps = work.basis != SAMPLES and f"{own} {work.basis}" not in run.detail.series
    steps = run.detail.steps
    factor = 1.0
    if is_steps and steps is not None and work.amount:
        factor = work.amount / (steps.last - steps.first + 1)
    processes = [unit for unit, scope in energy if scope == "process"]
    return WorkSources(
        unit_of_work=work.unit,
        energy_units=processes or [unit for unit, scope in energy if scope == "device"],
        metric=STEP if is_steps else work.basis,
        unit=own,
        is_rate=not is_steps and work.basis != SAMPLES,
        factor=factor,
    )


def derive(names: Sequence[str], sources: WorkSources, pieces: Pieces) -> dict[str, tuple[Ints, Floats]]:
    """Times and values of each of ``names``, from the pieces of the store that ``sources`` name."""
    told = pieces.get((sources.metric, sources.unit))
    energy = add_up([Total(*pieces[ENERGY, unit]) for unit in sources.energy_units if (ENERGY, unit) in pieces])
    if told is None:
        return {}
    work = total_of_rate(*told) if sources.is_rate else Total(told[0], told[1] * sources.factor)
    found = compute_efficiency(energy, work)
    columns = {
        JOULES_PER_WORK: found.joules_per_work,
        WORK_PER_SECOND: found.per_second,
        WORK_PER_SECOND_PER_WATT: found.per_second_per_watt,
    }
    return {name: (found.times_ms, columns[name]) for name in names if name in columns and len(found.times_ms)}


def label_of(name: str, units_of_work: set[str]) -> str:
    """In words: ``Joules per sample`` where all runs count samples."""
    many = units_of_work.pop() if len(units_of_work) == 1 else "work"
    one = many.removesuffix("s") if len(many) > 2 else many
    text = _LABELS[name].format(one=one, many=many)
    return text[0].upper() + text[1:]
