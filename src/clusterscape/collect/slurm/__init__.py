"""Collects from Slurm: inventory, queue and accounting, by its commands or by slurmrestd, of any supported version.

``cli``: runs Slurm's commands, including sprio for priority factors.
``collector``: the collector, and which part of accounting is read next.
``doctor``: checks for ``clusterscape doctor``.
``facts``: one job: its names, its workloads, the units that it holds.
``faults``: converts Slurm's errors to a SourceError with a hint.
``gres``: parses GRES strings and derives machine types.
``job_summaries``: parses the summaries that jobstats keeps of ended jobs.
``parse_history``: parses ended workloads and their executions from accounting.
``parse_jobs``: parses active workloads and their allocations.
``parse_nodes``: parses nodes, units and partitions.
``parse_rules``: parses reservations and preemption rules.
``rest``: queries slurmrestd.
``source``: the common interface of commands and slurmrestd.
``states``: job and node states in all their spellings.
``text_output``: parses the text of commands without ``--json``.
``values``: tolerant readers of Slurm's changing JSON formats, and hostlists.
"""

from clusterscape.collect.slurm.collector import SlurmCollector

__all__ = ["SlurmCollector"]
