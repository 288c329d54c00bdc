"""Slurm as a source: inventory, queue and accounting, from its commands or from slurmrestd, whatever their version."""

from clusterscape.collect.slurm.collector import SlurmCollector

__all__ = ["SlurmCollector"]
