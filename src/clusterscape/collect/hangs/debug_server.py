"""Reads pages and periodic dumps of PyTorch's debug server (``torch.distributed.debug``): all ranks in one text."""

import re
from html import unescape

_PAGE_SECTION = re.compile(r"<h2>Rank (\d{1,7}): [^<]*</h2>(.*?)(?=<h2>Rank |</section>|\Z)", re.DOTALL)
_PRE = re.compile(r"<pre>(.*?)</pre>", re.DOTALL)
_DUMP_SECTION = re.compile(r"^=== Rank (\d{1,7}): .*? ===$", re.MULTILINE)
_TITLE = "Torch Distributed Debug Server"


def is_debug_page(text: str) -> bool:
    """Whether the server wrote it."""
    return _TITLE in text[:20_000] or _DUMP_SECTION.search(text[:200_000]) is not None


def split_ranks(text: str) -> list[tuple[int, str]]:
    """What each rank answered. Ranks that could not be asked are left out."""
    if _TITLE in text[:20_000]:
        return [
            (int(section[1]), unescape(pre[1]))
            for section in _PAGE_SECTION.finditer(text)
            if "Failed to fetch" not in section[2] and (pre := _PRE.search(section[2]))
        ]
    parts = _DUMP_SECTION.split(text)
    return [
        (int(rank), content.strip("\n"))
        for rank, content in zip(parts[1::2], parts[2::2], strict=True)
        if not content.strip().startswith("Error: ")
    ]
