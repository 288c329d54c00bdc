"""Traces recorded on an H200 that ship with the demo: four ranks of a data-parallel run and of a pipeline, as profiled.

The cuts lie in ``traces``, made by ``tools/cut_traces.py``. Planted: rank 0 of the data-parallel run does extra work before every
backward and the data loading of its rank 3 is slow; stage 2 of the pipeline has more layers than the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

RANKS = 4


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """``prefix`` of its files' names, and what it is called."""

    prefix: str
    name: str


RECORDED_TRACES = (
    RecordedTrace("pipe", "Pipeline of 4 stages, 8 micro-batches"),
    RecordedTrace("ddp", "Data parallel, 4 ranks"),
)


@contextmanager
def trace_files(trace: RecordedTrace) -> Iterator[list[Path]]:
    """The files of a trace, one per rank."""
    with resources.as_file(resources.files("clusterscape.demo") / "traces") as folder:
        yield sorted(folder.glob(f"{trace.prefix}_rank*.json.gz"))
