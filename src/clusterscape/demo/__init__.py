"""A whole pretend cluster behind real protocols: it answers as dcgm-exporters and as slurmrestd, and has a past."""

from clusterscape.demo.cluster import DemoCluster, HistoryPart, start_demo_server
from clusterscape.simulate.placements import PLACEMENTS

__all__ = ["PLACEMENTS", "DemoCluster", "HistoryPart", "start_demo_server"]
