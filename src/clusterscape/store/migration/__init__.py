"""Moves a site from some stores to others: samples, records and artifacts, each checked at its new place."""

from clusterscape.store.migration.artifacts import move_artifacts
from clusterscape.store.migration.journal import Journal
from clusterscape.store.migration.records import move_records
from clusterscape.store.migration.samples import move_samples

__all__ = ["Journal", "move_artifacts", "move_records", "move_samples"]
