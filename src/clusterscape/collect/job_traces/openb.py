"""Reads Alibaba's openb trace: a list of pods (one job each), and the list of their nodes."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from clusterscape.collect.job_traces.cleaning import POD_STATUSES, Cleaner
from clusterscape.collect.job_traces.delimited import read_delimited
from clusterscape.collect.job_traces.text import FileFaults, TraceSource, find_heading, iter_blocks
from clusterscape.errors import SourceError
from clusterscape.model.jobs import JobTrace

_PODS = ("name", "cpu_milli", "num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
_NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


@dataclass(frozen=True, slots=True)
class OpenbNodes:
    """The nodes, one row each: name, cpu_milli, memory_mib, gpus, model (null without GPUs)."""

    frame: pl.DataFrame

    @property
    def gpus(self) -> int:
        """Total number of GPUs."""
        return int(self.frame["gpus"].sum())


def is_openb(start: str) -> bool:
    """Whether a file that starts with ``start`` is a list of pods."""
    return set(_PODS) <= set(find_heading(start))


def read_openb(source: TraceSource, name: str) -> JobTrace:
    """Read a list of pods. GPUs are ``num_gpu · gpu_milli / 1000``: below 1 if a GPU is shared. ``qos`` is the queue."""
    cleaner = Cleaner(POD_STATUSES)

    def reshape(frame: pl.DataFrame) -> pl.DataFrame:
        def number(column: str) -> pl.Expr:
            return pl.col(column).cast(pl.Float64, strict=False)

        run = number("deletion_time") - number("scheduled_time")
        return frame.with_columns(
            (number("scheduled_time") - number("creation_time")).alias("wait_s"),
            pl.when(number("scheduled_time").is_null()).then(None).otherwise(run).alias("run_s"),
            (number("num_gpu") * number("gpu_milli") / 1000).alias("gpus"),
            (number("cpu_milli") / 1000).ceil().alias("processors"),
            pl.lit(1.0).alias("nodes"),
        )

    fields = {column: column for column in ("wait_s", "run_s", "gpus", "processors", "nodes")}
    fields |= {"job_id": "name", "queue": "qos", "submit_s": "creation_time", "status": "pod_phase"}
    read_delimited(source, cleaner, fields, required=_PODS, reshape=reshape)
    return cleaner.finish(name, "openb", "gpus")


def read_openb_nodes(path: Path) -> OpenbNodes:
    """Read ``openb_node_list_*.csv``. Raises SourceError at the first line that is not a node."""
    rows: list[tuple[str, int, int, int, str | None]] = []
    for number, lines in iter_blocks(TraceSource(path), FileFaults()):
        for line_number, line in enumerate(lines, start=number):
            cells = [cell.strip() for cell in line.split(",")]
            if line_number == 1 and tuple(cells) != _NODES:
                raise SourceError(f"{path}, line 1: a list of nodes starts with {','.join(_NODES)}")
            if line_number == 1 or not line.strip():
                continue
            try:
                name, cpu_milli, memory_mib, gpus, model = cells
                rows.append((name, int(cpu_milli), int(memory_mib), int(gpus), model or None))
            except ValueError as error:
                raise SourceError(f"{path}, line {line_number}: not a node: {line[:80]!r}") from error
    schema = {"name": pl.String, "cpu_milli": pl.Int64, "memory_mib": pl.Int64, "gpus": pl.Int64, "model": pl.String}
    return OpenbNodes(pl.DataFrame(rows, schema=schema, orient="row"))
