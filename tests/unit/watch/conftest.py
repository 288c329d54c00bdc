"""The small cluster, for every test of rules."""

from clusters.small import small_cluster

__all__ = ["small_cluster"]
