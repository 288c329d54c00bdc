"""How much a compressed file may become: counted while it is decompressed, before the bytes are held. Decompresses nothing."""

from clusterscape.errors import TooLargeError

FREE_BYTES = 16 * 2**20
"""Small files may compress as well as they like."""
RATIO_SETTING = "limits.uploads.unpacked_ratio"


class UnpackedSize:
    """The decompressed size so far of a file called ``name``, which may reach ``most`` bytes and ``ratio`` times its own size."""

    def __init__(self, name: str, most: int, *, setting: str, ratio: float) -> None:
        self.size = 0
        self._name = name
        self._most = most
        self._setting = setting
        self._ratio = ratio

    def most_left(self, packed_bytes: int) -> int:
        """Bytes that may still come out of a file of ``packed_bytes``."""
        return max(0, min(self._most, max(FREE_BYTES, int(self._ratio * packed_bytes))) - self.size)

    def add(self, count: int, *, packed_bytes: int) -> None:
        """``count`` more bytes came out of the first ``packed_bytes`` of the file. Raises TooLargeError."""
        self.size += count
        if self.size > self._most:
            raise TooLargeError(f"{self._name} has more than {self._most:,} bytes decompressed", setting=self._setting)
        if self.size > FREE_BYTES and self.size > self._ratio * max(packed_bytes, 1):
            raise TooLargeError(
                f"{self._name} decompresses to more than {self._ratio:g} times its size", setting=RATIO_SETTING
            )
