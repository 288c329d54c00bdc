"""The demo: a simulated cluster behind real protocols (dcgm-exporter and slurmrestd), with a history.

``cluster``: URLs, history and server process of the demo, for its command.
``exporter``: simulates dcgm-exporter.
``hardware``: machine types, nodes, racks and GPUs of the demo cluster.
``jobs``: a job and its state over time.
``planted``: jobs and faults that every demo shows, and random outages.
``recorded``: data recorded on an H200 that ships with the demo.
``records``: the demo's jobs as workloads and allocations.
``scenario``: all events: jobs, outages, errors.
``scheduler``: the demo's scheduler, which runs uncompiled.
``server``: the demo cluster as a separate process.
``slurm_values``: value formats of Slurm's API, and the cluster at one moment.
``slurmrestd``: simulates slurmrestd.
``stream``: the random job stream, and the users who submit it.
``telemetry``: metrics of every GPU, a pure function of (scenario, unit, time).
``timeline``: the behavior of GPUs while a job runs.
``tracked_runs``: tracked runs of the demo cluster.
"""

from clusterscape.demo.cluster import DemoCluster, HistoryPart, start_demo_server
from clusterscape.simulate.placements import PLACEMENTS

__all__ = ["PLACEMENTS", "DemoCluster", "HistoryPart", "start_demo_server"]
