"""Derives a machine type (``A100-80G``) from a GPU's product name and its measured memory."""

import re

_NOISE = frozenset({"nvidia", "tesla", "geforce", "quadro", "amd", "instinct", "graphics", "generation"})
_FORM = re.compile(r"sxm\d*|pcie|pci|hbm\d\w*|nvl|oam|ts", re.IGNORECASE)
_MEMORY = re.compile(r"(\d{1,4})\s*gi?b", re.IGNORECASE)

# Nominal sizes, GB. A GPU reports up to a tenth less: ECC and the driver reserve memory, and some sizes count 10^9 bytes.
_SOLD_SIZES = (4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 144, 180, 192, 256, 288)
_MISSING_SHARE = 0.10


def name_machine_type(model_name: str, memory_bytes: int | None = None) -> str | None:
    """``NVIDIA A100-SXM4-80GB`` → ``A100-80G``, ``NVIDIA H200`` with 140.4 GiB → ``H200-141G``; None for an empty name.

    The size in the name is used unless the measured memory contradicts it: ``NVIDIA GH200 480GB`` has 96 GB on the GPU.
    """
    words = re.split(r"[\s_-]+", re.split(r"\bMIG\b", model_name)[0].strip())
    named_gb = next((int(size[1]) for word in words if (size := _MEMORY.fullmatch(word))), None)
    model = "-".join(
        word.upper()
        for word in words
        if word and word.lower() not in _NOISE and not _FORM.fullmatch(word) and not _MEMORY.fullmatch(word)
    )
    if not model:
        return None
    size_gb = _choose_size(named_gb, memory_bytes)
    return f"{model}-{size_gb}G" if size_gb else model


def _choose_size(named_gb: int | None, memory_bytes: int | None) -> int | None:
    if not memory_bytes or memory_bytes <= 0:
        return named_gb
    measured_gib = memory_bytes / 2**30
    candidates = _SOLD_SIZES if named_gb is None else (named_gb, *_SOLD_SIZES)
    for size in candidates:
        # Half a GiB of tolerance upwards: a GPU never has noticeably more than its nominal size.
        if size * (1 - _MISSING_SHARE) <= measured_gib <= size + 0.5:
            return size
    return max(1, round(measured_gib))
