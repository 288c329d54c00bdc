"""Which nodes a job's GPUs come from, one file each: a file that defines PLACEMENT is a placement under its own name."""

import importlib
import pkgutil
from collections.abc import Mapping

from clusterscape.errors import QueryError
from clusterscape.simulate.placements.least_allocated import LeastAllocated
from clusterscape.simulate.placements.most_allocated import MostAllocated
from clusterscape.simulate.placing import Placement

PLACEMENTS: Mapping[str, type[Placement]] = {"spread": LeastAllocated, "most-allocated": MostAllocated}
"""Those of the demo, by the name users write there: it needs no more than free GPUs by node."""


def placement_names() -> list[str]:
    """Every placement there is, as it is written on the command line."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def find_placement(name: str) -> Placement:
    """The placement of that name; raises QueryError where there is none."""
    if name not in placement_names():
        raise QueryError(f"there is no placement {name!r}", hint=f"There are {', '.join(placement_names())}.")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    placement: Placement = module.PLACEMENT
    return placement
