"""Which nodes a job's GPUs come from, one file each; ``PLACEMENTS`` finds them by the name users write."""

from collections.abc import Mapping

from clusterscape.simulate.contract import Placement
from clusterscape.simulate.placements.pack import Pack
from clusterscape.simulate.placements.spread import Spread

PLACEMENTS: Mapping[str, type[Placement]] = {"spread": Spread, "most-allocated": Pack}
"""``most-allocated`` is what Kubernetes calls it; Slurm's ``CR_Pack_Nodes`` and best fit are the same."""
