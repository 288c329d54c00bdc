"""Reads Slurm's texts about generic resources: what a node has, what a job asks for, and which GPUs it was given.

gpu:a100:8(S:0-1)            a node's GPUs
gpu:h100:4(IDX:0-3)          given to a job on one node, by index
shard:2(IDX:0), mps:50(...)  a share of a GPU
gres/gpu:a100=8, gres:gpu:3  asked for
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from clusterscape.collect.slurm.hostlist import split_outside

MAX_GPUS_PER_NODE = 1024
MAX_GPUS = 1_000_000
SHARED_NAMES = frozenset({"shard", "mps"})

_ENTRY = re.compile(r"(?P<name>[^:=()]+)(?P<rest>[:=][^()]*)?(?:\((?P<note>[^()]*)\))?")
_MIG_PROFILE = re.compile(r"(?P<profile>\d+g\.\d+gb(?:\+\w+)?)", re.IGNORECASE)
_GPU_TEXT = re.compile(r"\s*(gres[/:])?gpu([:=]|$)")
_SHARES = re.compile(r"\d{1,9}/\d{1,9}(?:,\d{1,9}/\d{1,9})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource. ``indices`` is None where the text names no devices."""

    name: str
    type: str | None
    count: int
    indices: tuple[int, ...] | None = None

    @property
    def mig_profile(self) -> str | None:
        """``1g.5gb`` where the type is a MIG profile such as ``a100_1g.5gb``."""
        return find_mig_profile(self.type)


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """How many GPUs, and of which type where one is named."""

    count: int = 0
    type: str | None = None


NO_GPUS = GpuAsk()


def find_mig_profile(gres_type: str | None) -> str | None:
    """The MIG profile in a GRES type, or None."""
    match = _MIG_PROFILE.search(gres_type or "")
    return match["profile"].lower() if match else None


def parse_gres(text: str) -> list[Gres]:
    """The entries of a GRES text; raises ValueError where an entry cannot be understood."""
    if text.strip() in ("", "(null)", "N/A"):
        return []
    return [_parse_entry(entry) for entry in split_outside(text, "(", ")") if entry]


def _parse_entry(entry: str) -> Gres:
    for prefix in ("gres/", "gres:"):
        entry = entry.removeprefix(prefix)
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"{entry[:80]!r} is not a generic resource")
    words = [word for word in re.split("[:=]", match["rest"] or "") if word and word != "no_consume"]
    count = 1  # "gpu" and "gpu:a100" mean one
    if words and (number := _parse_count(words[-1])) is not None:
        count = number
        words.pop()
    return Gres(match["name"].strip().lower(), words[0] if words else None, count, _parse_note(match["note"]))


def _parse_count(word: str) -> int | None:
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", word, re.ASCII)
    if match is None:
        return None
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]]


def _parse_note(note: str | None) -> tuple[int, ...] | None:
    """Device indices from ``IDX:0-3,7`` or from shares per device, ``2/4,0/4``; sockets (``S:0``) and counts name none."""
    if note is None:
        return None
    if note.startswith("IDX:"):
        return _parse_indices(note.removeprefix("IDX:"))
    if _SHARES.fullmatch(note):
        return tuple(index for index, share in enumerate(note.split(",")) if not share.startswith("0/"))
    return None


def _parse_indices(text: str) -> tuple[int, ...] | None:
    if text in ("", "N/A"):
        return ()
    indices: list[int] = []
    for piece in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", piece, re.ASCII)
        if match is None:
            raise ValueError(f"{text[:80]!r} are not device indices")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last >= MAX_GPUS_PER_NODE:
            raise ValueError(f"{text[:80]!r} are not device indices")
        indices.extend(range(first, last + 1))
    return tuple(indices)


@functools.lru_cache(maxsize=4096)  # jobs ask in few different words
def parse_gpu_ask(text: str) -> GpuAsk:
    """The GPUs in a TRES text (``cpu=4,gres/gpu=8,gres/gpu:a100=8``, ``gres:gpu:a100:8``, ``gpu:2``); ValueError as above.

    Slurm names the sum and its typed parts side by side; the sum wins.
    """
    entries = [_parse_entry(entry) for entry in text.split(",") if _is_gpu_text(entry)]
    untyped = sum(entry.count for entry in entries if entry.type is None)
    typed = sum(entry.count for entry in entries if entry.type is not None)
    return GpuAsk(min(untyped or typed, MAX_GPUS), _only({entry.type for entry in entries if entry.type}))


def _is_gpu_text(entry: str) -> bool:
    return _GPU_TEXT.match(entry) is not None


def _only(types: Iterable[str]) -> str | None:
    named = list(types)
    return named[0] if len(named) == 1 else None


def sum_gpus(entries: Iterable[Gres]) -> GpuAsk:
    """Whole GPUs and MIG instances among these; shares of a GPU do not count."""
    gpus = [entry for entry in entries if entry.name == "gpu"]
    return GpuAsk(min(sum(gpu.count for gpu in gpus), MAX_GPUS), _only({gpu.type for gpu in gpus if gpu.type}))
