"""Traces of distributed runs, as profilers write them, read into one span table. One file per format."""

from clusterscape.collect.traces.reading import read_traces

__all__ = ["read_traces"]
