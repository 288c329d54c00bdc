"""The small cluster and the run, for every test of this folder."""

from clusters.run_site import run_site
from clusters.small import small_cluster

__all__ = ["run_site", "small_cluster"]
