"""Validates, normalizes, deduplicates and stores observations of collectors; the only writer of the stores.

``drops``: counts dropped rows by reason, and resolves duplicates.
``executions``: merges the executions of a workload from queue and accounting.
``exporter_labels``: GPUs, hardware and holders from an exporter's labels.
``exporter_matching``: matches every exporter to a node.
``hardware_state``: samples of missing GPUs, silent exporters and nodes out of service.
``ledger``: the current cluster state, and what an observation changes in it; pure.
``name_questions``: exporters without a certain node, as questions; stores matches as documents.
``node_merging``: merges the reports of several schedulers on a node.
``node_names``: finds a scheduler's node by a name or an address.
``normalize``: scrapes to canonical samples; handles the irregularities of exporter data.
``pipeline``: ``Ingest``, through which everything is stored.
``run_figures``: key figures of a run, updated as samples arrive.
``run_pieces``: parses one piece of a run's file, checked against schema and limits.
``run_records``: a run's workload and its allocations.
``run_usage``: quotas of users' runs, and tombstones of deleted runs.
``runs``: receives what trackers send; checks ownership and units.
``series_map``: maps series of an exporter to units and metrics.
``source_limits``: limits on what sources may report.
``traces``: imports traces, and stores spans and report.
"""
