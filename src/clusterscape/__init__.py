"""ClusterScape makes a shared GPU cluster transparent to its operators and its researchers."""

__version__ = "0.1.0"
