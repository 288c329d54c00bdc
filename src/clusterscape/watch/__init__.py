"""Follows ingest: keeps statistics of every life, judges rules by them, stores violations and sends alerts.

``alerts``: delivers alerts to channels.
``catching_up``: reads samples that lives have missed, and long windows, from the store.
``exporting``: remote write to a Prometheus-compatible server.
``hardware_statistics``: rows and statistics of GPUs, nodes and sources, and trials of rules on these.
``judging``: judges lives and hardware; verdicts become violations.
``life_columns``: statistics of all lives as columns, for rules.
``life_statistics``: statistics of all lives: updated by ingest, read by rules, kept across restarts in a checkpoint.
``lives``: statistics of every life, updated with every scrape.
``notifier``: posts started and stopped violations to the alerts; respects mutes.
``period_statistics``: sums of the ended jobs of users and projects, for rules.
``rejudging``: judges the past again when a rule changes.
``rulebook``: the site's rules, and mutes.
``slots``: which row belongs to which life.

``trial``: tries a rule on the stored past.
``watcher``: the thread that judges a site, and its loop.
"""
