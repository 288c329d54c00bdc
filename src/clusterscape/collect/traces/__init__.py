"""Reads profiler traces of distributed runs into one span table. One file per format, listed in ``formats``.

``captures``: adds capture files to PyTorch traces.
``collective_names``: recognizes collectives by the names of kernels and annotations.
``files``: finds files, reads their bytes within limits, assigns ranks.
``formats``: detects the format of a file and chooses its reader.
``kineto``: decodes Kineto files into typed events.
``kineto_context``: step, phase, micro-batch and namespace of Kineto spans.
``kineto_measures``: FLOPs (one entry in ``FORMULAS`` per operator) and memory of Kineto traces.
``kineto_spans``: converts Kineto events to columns of spans.
``reading``: reads traces of any format, in this process, in several, or on a cluster.
"""

from clusterscape.collect.traces.reading import read_traces

__all__ = ["read_traces"]
