"""Which nodes a job's GPUs come from, one file each: a file that defines PLACEMENT is a placement under its own name.

TITLE is what the page calls it, where its name does not do.
"""

from collections.abc import Mapping

from clusterscape.simulate.choices import Folder
from clusterscape.simulate.placements.least_allocated import LeastAllocated
from clusterscape.simulate.placements.most_allocated import MostAllocated
from clusterscape.simulate.placing import Placement

PLACEMENTS: Mapping[str, type[Placement]] = {"spread": LeastAllocated, "most-allocated": MostAllocated}
"""Those of the demo, by the name users write there: it needs no more than free GPUs by node."""

PLACEMENT_FILES = Folder(__name__, __path__, "placement")


def placement_names() -> list[str]:
    """Every placement there is, as it is written on the command line."""
    return PLACEMENT_FILES.names()


def find_placement(name: str) -> Placement:
    """The placement of that name; raises QueryError where there is none."""
    placement: Placement = PLACEMENT_FILES.load(name).PLACEMENT
    return placement
