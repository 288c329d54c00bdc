"""Parses the summaries that jobstats keeps of ended jobs, in AdminComment or its database: ``JS1:`` and a compressed JSON."""

import base64
import binascii
import zlib
from collections.abc import Mapping

import orjson

from clusterscape.collect.slurm.values import as_object
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage

PREFIX = "JS1:"
MAX_BYTES = 4 * 2**20
"""Far more than a job on all nodes of the largest cluster; beyond it a summary is damaged, or made to fill the memory."""


def parse_job_summary(text: str, *, run_s: float, gpu_count: int) -> JobUsage | None:
    """What the job used; None if the text is not a summary, or has no numbers (``Short``, ``None``)."""
    if not text.startswith(PREFIX):
        return None
    try:
        packed = base64.b64decode(text.removeprefix(PREFIX), validate=True)
        unpacking = zlib.decompressobj(wbits=31)
        document = as_object(orjson.loads(unpacking.decompress(packed, MAX_BYTES)))
    except (binascii.Error, zlib.error, orjson.JSONDecodeError):
        return None
    nodes = {name: _read_node(as_object(node)) for name, node in as_object(document.get("nodes")).items()}
    return JobUsage(run_s=run_s, gpu_count=gpu_count, nodes=nodes) if nodes else None


def _read_node(node: Mapping[str, object]) -> NodeUsage:
    util, used, total = (as_object(node.get(key)) for key in ("gpu_utilization", "gpu_used_memory", "gpu_total_memory"))
    cores = _read_number(node.get("cpus"))
    return NodeUsage(
        cores=None if cores is None else round(cores),
        cpu_s=_read_number(node.get("total_time")),
        memory_used_bytes=_read_number(node.get("used_memory")),
        memory_limit_bytes=_read_number(node.get("total_memory")),
        gpus={
            index: GpuUsage(
                util_ratio=None if (percent := _read_number(util.get(index))) is None else percent / 100,
                memory_used_bytes=_read_number(used.get(index)),
                memory_total_bytes=_read_number(total.get(index)),
            )
            for index in sorted({*util, *used, *total})
        },
    )


def _read_number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
