"""What is checked when a file is read: that it is one, and that it is not too large after decompression.

Bytes are counted during decompression; the module itself decompresses nothing.
"""

import stat
from pathlib import Path

from clusterscape.errors import SourceError, TooLargeError

FREE_BYTES = 16 * 2**20
"""Up to this decompressed size the ratio is not limited."""
RATIO_SETTING = "limits.uploads.decompression_ratio"


def check_is_file(path: Path) -> None:
    """Raise SourceError if the path is a pipe or a device, which may never end; OSError if it cannot be read at all.

    A folder passes: what can be done with it is up to the reader.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise SourceError(f"{path} is a pipe or a device, not a file", hint="Write its content to a file first.")


class UnpackedSize:
    """The decompressed size of the file ``name`` so far, limited to ``most`` bytes and to ``ratio`` times its compressed size."""

    def __init__(self, name: str, most: int, *, setting: str, ratio: float) -> None:
        self.size = 0
        self._name = name
        self._most = most
        self._setting = setting
        self._ratio = ratio

    def most_left(self, packed_bytes: int) -> int:
        """How many more bytes may be decompressed from a file of ``packed_bytes``."""
        return max(0, min(self._most, max(FREE_BYTES, int(self._ratio * packed_bytes))) - self.size)

    def add(self, count: int, *, packed_bytes: int) -> None:
        """Count ``count`` more bytes, decompressed from the first ``packed_bytes`` of the file. Raises TooLargeError."""
        self.size += count
        if self.size > self._most:
            raise TooLargeError(
                f"{self._name} has more than {self._most:,} bytes after decompression", setting=self._setting
            )
        if self.size > FREE_BYTES and self.size > self._ratio * max(packed_bytes, 1):
            raise TooLargeError(
                f"{self._name} decompresses to more than {self._ratio:g} times its size", setting=RATIO_SETTING
            )
