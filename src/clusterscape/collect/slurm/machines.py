"""Names a node's machine type (``A100-80G``) from what Slurm says of it: GRES types and node features."""

import functools
import re
from collections.abc import Sequence

from clusterscape.collect.slurm.gres import find_mig_profile

_NOISE = frozenset({"nvidia", "tesla", "geforce", "quadro", "amd", "instinct", "graphics", "gpu", "generation"})
_FORM = re.compile(r"sxm\d*|pcie|pci|hbm\d\w*|nvl|oam|smc|ts", re.IGNORECASE)
_MEMORY = re.compile(r"(\d{1,4})\s*gi?b?", re.IGNORECASE)
_KNOWN = re.compile(
    r"k[48]0|p(?:4|40|100)|v100s?|t4|a(?:2|10g?|16|30|40|100|800)|l(?:4|40s?)|h(?:20|100|200|800)|gh200|gb?[23]00"
    r"|b[123]00|mi\d{2,3}[ax]?|(?:rtx|gtx)[_-]?\w*\d{3,4}\w*",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=1024)  # a cluster has few kinds of nodes
def name_machine_type(gres_type: str | None, features: tuple[str, ...] = ()) -> str | None:
    """``nvidia_a100-sxm4-80gb`` → ``A100-80G``; memory may come from a feature such as ``a100-80gb``.

    Without a GRES type a feature that is a known GPU model serves; without that the type is not known.
    """
    if gres_type is None:
        gres_type = next((feature for feature in features if _KNOWN.match(feature)), None)
        if gres_type is None:
            return None
    model, memory = _take_apart(gres_type)
    if not model:
        return None
    if memory is None:
        memory = _memory_from_features(model, features)
    return f"{model}-{memory}G" if memory else model


def _take_apart(text: str) -> tuple[str, int | None]:
    """Model in upper case, and memory in GB where named."""
    profile = find_mig_profile(text)
    if profile:  # the memory of a slice is not the GPU's
        text = text[: text.lower().index(profile)]
    memory: int | None = None
    words: list[str] = []
    for word in re.split(r"[_\-\s]+", text):
        match = _MEMORY.fullmatch(word)
        if match:
            memory = int(match[1])
        elif word and word.lower() not in _NOISE and not _FORM.fullmatch(word):
            words.append(word.upper())
    return "-".join(words), memory


def _memory_from_features(model: str, features: Sequence[str]) -> int | None:
    found = {memory for name, memory in map(_take_apart, features) if name == model and memory}
    return found.pop() if len(found) == 1 else None
