"""Placements, one file each: a file that defines PLACEMENT is a placement named after the file.

TITLE sets its name on the page, if the file's name is not suitable.
"""

from collections.abc import Mapping

from clusterscape.simulate.choices import ChoiceFolder
from clusterscape.simulate.placements.least_allocated import LeastAllocated
from clusterscape.simulate.placements.most_allocated import MostAllocated
from clusterscape.simulate.placing import Placement

PLACEMENTS: Mapping[str, type[Placement]] = {"spread": LeastAllocated, "most-allocated": MostAllocated}
"""The placements of the demo by their option names; the demo provides only free GPUs by node."""

PLACEMENT_FILES = ChoiceFolder(__name__, __path__, "placement")


def placement_names() -> list[str]:
    """Names of all placements, as on the command line."""
    return PLACEMENT_FILES.names()


def find_placement(name: str) -> Placement:
    """The placement of that name; raises QueryError if there is none."""
    placement: Placement = PLACEMENT_FILES.load(name).PLACEMENT
    return placement
