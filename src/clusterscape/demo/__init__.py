"""A whole pretend cluster behind real protocols: it answers as dcgm-exporters and as slurmrestd, and has a past."""

from clusterscape.demo.cluster import DemoCluster, HistoryPart, start_demo_server

__all__ = ["DemoCluster", "HistoryPart", "start_demo_server"]
