"""Names of the units that samples of a tracked run are stored under: all of them lie in the run's own namespace.

``run:ID`` is the run as a whole, ``run:ID/rank1`` a rank, ``run:ID/HOST:0`` its processes' share of a GPU. What a tracker
measured of a whole GPU, a MIG instance or a host is ``run:ID/at/UNIT``: a run never writes samples of the cluster's own units.
"""

from clusterscape.model.ids import UnitId

_PREFIX = "run:"
_MEASURED = "at/"


def is_run_unit(unit: str) -> bool:
    """Whether samples under this name were sent by a tracked run."""
    return unit.startswith(_PREFIX)


def run_of_unit(unit: str) -> str | None:
    """The id of the run whose namespace a unit lies in; None for units of the cluster."""
    return unit.removeprefix(_PREFIX).partition("/")[0] if is_run_unit(unit) else None


def run_unit(run: str, part: str | None = None) -> UnitId:
    """The run as a whole, or a part of it (``rank1``)."""
    return UnitId(f"{_PREFIX}{run}" if part is None else f"{_PREFIX}{run}/{part}")


def measured_unit(run: str, unit: str) -> UnitId:
    """Where the run's own measurements of a unit of the cluster are stored."""
    return run_unit(run, f"{_MEASURED}{unit}")


def cluster_unit(unit: str) -> UnitId:
    """The unit of the cluster that a run measured; others as they are."""
    _, measured, name = unit.partition(f"/{_MEASURED}")
    return UnitId(name) if measured and is_run_unit(unit) else UnitId(unit)


def place_in_run(run: str, unit: str) -> str | None:
    """What a unit is to the run that wrote it: its rank, or the GPU or host; None for the run as a whole."""
    if run_of_unit(unit) != run:
        return unit
    return unit.removeprefix(f"{_PREFIX}{run}").removeprefix("/").removeprefix(_MEASURED) or None
