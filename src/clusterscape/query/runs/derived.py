"""Metrics that no listener reads: what a run's work cost over time, from its energy and from what tells its work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterscape.analyze.runs.efficiency import Total, add_up, compute_efficiency, total_of_rate
from clusterscape.analyze.runs.lines import Floats, Ints
from clusterscape.query.runs.rows import metric_of

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


def find_sources(run: str, listed: Mapping[str, Any], detail: Mapping[str, Any]) -> WorkSources | None:
    """None where a run does not tell its work, or has no GPU whose energy is known."""
    work = (listed.get("figures") or {}).get("work")
    energy = [
        one
        for key, told in detail.get("series", {}).items()
        if key.endswith(f" {ENERGY}") and (one := metric_of(run, key, told)).count > 1
    ]
    if not work or not energy:
        return None
    own = [one.unit for one in energy if one.scope == "process"]
    basis = str(work["basis"])
    is_steps = basis not in (SAMPLES, *detail_names(detail, run))
    steps = detail.get("steps")
    factor = 1.0
    if is_steps and steps and work.get("amount"):
        factor = work["amount"] / (steps[1] - steps[0] + 1)
    return WorkSources(
        unit_of_work=str(work["unit"]),
        energy_units=own or [one.unit for one in energy if one.scope == "device"],
        metric=STEP if is_steps else basis,
        unit=f"run:{run}",
        is_rate=not is_steps and basis != SAMPLES,
        factor=factor,
    )


def detail_names(detail: Mapping[str, Any], run: str) -> list[str]:
    """Names of what the script itself said."""
    own = f"run:{run} "
    return [key.removeprefix(own) for key in detail.get("series", {}) if key.startswith(own)]


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
