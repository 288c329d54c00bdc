"""Collectors: one file or folder per source. Each yields observations (model records) and does not know the store.

Modules that several sources share:

``bounded_responses``: reads HTTP bodies up to a maximum size.
``contract``: the collector protocol.
``exporter_failures``: explains why a scrape failed.
``exposition``: parses the Prometheus text format in bulk, with a limit on series.
``nvml_device``: calls to NVML.
``range_vectors``: parses responses to Prometheus range queries, with a limit on series.
``recorded_logs``: reads recorded nvidia-smi logs and run events.
``schedule``: polls every collector at its interval.
``targets``: the list of exporters to scrape, and how shards split it.
``unpacking``: limits the decompressed size of a file.
``hangs``: reads dumps and stacks of runs that hang.
``job_traces``: reads recorded job histories.
``traces``: reads profiler traces of distributed runs.
"""
