"""Recognizes collectives by the names of kernels and annotations: NCCL, RCCL, HCCL, oneCCL, gloo and MPI of any version."""

import re
from functools import lru_cache

HOST_BACKENDS = ("gloo", "mpi", "ucc")
"""Their annotations are the communication itself; those of NCCL and similar libraries only enclose the launch of a kernel."""

_KERNEL = re.compile(r"(?:nccl|rccl|mscclpp|msccl|oneccl|hcom_|hccl)", re.IGNORECASE)
_ANNOTATION = re.compile(r"^(nccl|rccl|hccl|xccl|gloo|mpi|ucc|oneccl):\s*(.+)$", re.IGNORECASE)
# The order matters: ReduceScatter before Reduce, AllToAll before All…
_KINDS = (
    ("reduce_scatter", re.compile(r"reduce[_ ]?scatter", re.IGNORECASE)),
    ("all_reduce", re.compile(r"all[_ ]?reduce", re.IGNORECASE)),
    ("all_gather", re.compile(r"all[_ ]?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all[_ ]?to[_ ]?all|alltoall", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast|bcast", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
    ("send_recv", re.compile(r"send[_ ]?recv|batch_isend_irecv|coalesced", re.IGNORECASE)),
    ("gather", re.compile(r"gather", re.IGNORECASE)),
    ("scatter", re.compile(r"scatter", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
    ("recv", re.compile(r"recv|receive", re.IGNORECASE)),
    ("send", re.compile(r"send", re.IGNORECASE)),
)
SYNCHRONOUS = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""No rank can finish before the last one has arrived, so their ends align the clocks."""
POINT_TO_POINT = frozenset({"send", "recv"})


@lru_cache(maxsize=65536)
def is_communication_kernel(name: str) -> bool:
    """Whether a device kernel belongs to a collective."""
    return _KERNEL.search(name) is not None


@lru_cache(maxsize=65536)
def find_kind(name: str) -> str | None:
    """``all_reduce`` for "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "allreduce", "c10d::allreduce_" …"""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), None)


@lru_cache(maxsize=65536)
def parse_annotation(name: str) -> tuple[str, str] | None:
    """Parse annotations such as "gloo:all_reduce" into (backend, kind)."""
    match = _ANNOTATION.match(name)
    if match is None:
        return None
    return match[1].lower(), find_kind(match[2]) or match[2].strip().replace(" ", "_")
