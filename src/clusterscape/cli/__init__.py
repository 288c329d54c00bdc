"""The ``clusterscape`` command: one file per sub-command; composes everything and is imported by nothing."""

from clusterscape.cli.entry import main

__all__ = ["main"]
