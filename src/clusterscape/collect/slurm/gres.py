"""Parses Slurm's GRES strings: the GPUs of a node, those that a job requests, and those that it is allocated; and derives the
machine type (``A100-80G``) from GRES types and node features.

gpu:a100:8(S:0-1)            a node's GPUs
gpu:h100:4(IDX:0-3)          allocated to a job on one node, by index
gpu:(null):0(IDX:N/A)        of no type, none allocated
gpu(IDX:0-1)                 as older versions print it
shard:2(IDX:0), mps:50(...)  a share of a GPU
gres/gpu:a100=8, gres:gpu:3  requested
"""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterscape.collect.slurm.values import split_outside

MAX_GPUS_PER_NODE = 1024
MAX_GPUS = 1_000_000
SHARED_NAMES = frozenset({"shard", "mps"})

_ENTRY = re.compile(r"(?P<name>[^:=()]+)(?P<rest>[:=][^()]*)?(?:\((?P<note>[^()]*)\))?")
_MIG_PROFILE = re.compile(r"(?P<profile>\d+g\.\d+gb(?:\+\w+)?)", re.IGNORECASE)
_GPU_TEXT = re.compile(r"\s*(gres[/:])?gpu([:=]|$)")
_SHARES = re.compile(r"\d{1,9}/\d{1,9}(?:,\d{1,9}/\d{1,9})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource. ``indices`` is None if the text has no devices."""

    name: str
    type: str | None
    count: int
    indices: tuple[int, ...] | None = None

    @property
    def mig_profile(self) -> str | None:
        """``1g.5gb`` if the type is a MIG profile such as ``a100_1g.5gb``."""
        return find_mig_profile(self.type)


@dataclass(frozen=True, slots=True)
class GpuCount:
    """A number of GPUs, and their type if it is known."""

    count: int = 0
    type: str | None = None


NO_GPUS = GpuCount()


def find_mig_profile(gres_type: str | None) -> str | None:
    """The MIG profile in a GRES type, or None."""
    match = _MIG_PROFILE.search(gres_type or "")
    return match["profile"].lower() if match else None


def parse_gres(text: str) -> list[Gres]:
    """Parse the entries of a GRES string. Raises ValueError if one is malformed."""
    if text.strip() in ("", "(null)", "N/A"):
        return []
    return [_parse_entry(entry) for entry in split_outside(text, "(", ")") if entry]


def _parse_entry(entry: str) -> Gres:
    for prefix in ("gres/", "gres:"):
        entry = entry.removeprefix(prefix)
    entry = entry.replace("(null)", "")  # gpu:(null):0(IDX:N/A): a GPU without a type
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"{entry[:80]!r} is not a generic resource")
    fields = [field for field in re.split("[:=]", match["rest"] or "") if field and field != "no_consume"]
    count, has_count = 1, False  # "gpu" and "gpu:a100" mean one
    if fields and (number := _parse_count(fields[-1])) is not None:
        count = number
        fields.pop()
        has_count = True
    indices = _parse_note(match["note"])
    if not has_count and indices:
        count = len(indices)
    return Gres(match["name"].strip().lower(), fields[0] if fields else None, count, indices)


def _parse_count(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", text, re.ASCII)
    if match is None:
        return None
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]]


def _parse_note(note: str | None) -> tuple[int, ...] | None:
    """Parse device indices from ``IDX:0-3,7`` or from shares per device, ``2/4,0/4``; sockets (``S:0``) and counts have none."""
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


@functools.lru_cache(maxsize=4096)  # few distinct strings
def parse_gpu_count(text: str) -> GpuCount:
    """Parse the GPUs in a TRES string (``cpu=4,gres/gpu=8,gres/gpu:a100=8``, ``gres:gpu:a100:8``, ``gpu:2``).

    Slurm lists the total next to its typed parts; the total is used. Raises ValueError if an entry is malformed.
    """
    entries = [_parse_entry(entry) for entry in text.split(",") if _is_gpu_text(entry)]
    untyped = sum(entry.count for entry in entries if entry.type is None)
    typed = sum(entry.count for entry in entries if entry.type is not None)
    return GpuCount(min(untyped or typed, MAX_GPUS), _only({entry.type for entry in entries if entry.type}))


def _is_gpu_text(entry: str) -> bool:
    return _GPU_TEXT.match(entry) is not None


def _only(types: Iterable[str]) -> str | None:
    distinct = list(types)
    return distinct[0] if len(distinct) == 1 else None


def sum_gpus(entries: Iterable[Gres]) -> GpuCount:
    """Count whole GPUs and MIG instances; shares of a GPU do not count."""
    gpus = [entry for entry in entries if entry.name == "gpu"]
    return GpuCount(min(sum(gpu.count for gpu in gpus), MAX_GPUS), _only({gpu.type for gpu in gpus if gpu.type}))


_NOISE = frozenset({"nvidia", "tesla", "geforce", "quadro", "amd", "instinct", "graphics", "gpu", "generation"})
_FORM = re.compile(r"sxm\d*|pcie|pci|hbm\d\w*|nvl|oam|smc|ts", re.IGNORECASE)
_MEMORY = re.compile(r"(\d{1,4})\s*gi?b?", re.IGNORECASE)
_KNOWN_MODELS = re.compile(
    r"k[48]0|p(?:4|40|100)|v100s?|t4|a(?:2|10g?|16|30|40|100|800)|l(?:4|40s?)|h(?:20|100|200|800)|gh200|gb?[23]00"
    r"|b[123]00|mi\d{2,3}[ax]?|(?:rtx|gtx)[_-]?\w*\d{3,4}\w*",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=1024)  # few distinct node types
def name_machine_type(gres_type: str | None, features: tuple[str, ...] = ()) -> str | None:
    """``nvidia_a100-sxm4-80gb`` → ``A100-80G``; memory may come from a feature such as ``a100-80gb``.

    Without a GRES type, a feature that is a known GPU model is used; otherwise None.
    """
    if gres_type is None:
        gres_type = next((feature for feature in features if _KNOWN_MODELS.match(feature)), None)
        if gres_type is None:
            return None
    model, memory = _split_model(gres_type)
    if not model:
        return None
    if memory is None:
        memory = _memory_from_features(model, features)
    return f"{model}-{memory}G" if memory else model


def _split_model(text: str) -> tuple[str, int | None]:
    """Split into the model, in upper case, and the memory in GB, if given."""
    profile = find_mig_profile(text)
    if profile:  # the memory of a slice is not the GPU's
        text = text[: text.lower().index(profile)]
    memory: int | None = None
    model_parts: list[str] = []
    for part in re.split(r"[_\-\s]+", text):
        match = _MEMORY.fullmatch(part)
        if match:
            memory = int(match[1])
        elif part and part.lower() not in _NOISE and not _FORM.fullmatch(part):
            model_parts.append(part.upper())
    return "-".join(model_parts), memory


def _memory_from_features(model: str, features: Sequence[str]) -> int | None:
    sizes = {memory for name, memory in map(_split_model, features) if name == model and memory}
    return sizes.pop() if len(sizes) == 1 else None
