"""One curve as a PNG, for mails: mail clients show no SVG. Draws only an area; the text is in the mail."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np

WIDTH, HEIGHT = 600, 90
_PAPER, _AREA, _BASE = (246, 247, 249), (47, 111, 208), (200, 205, 212)


def draw_curve(values: Sequence[float | None], most: float | None) -> bytes | None:
    """The curve from 0 to ``most`` (or its largest value); gaps where values are missing. None if all are."""
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    if not np.isfinite(numbers).any():
        return None
    top = most or float(np.nanmax(numbers)) or 1.0
    pixels = np.full((HEIGHT, WIDTH, 3), _PAPER, np.uint8)
    columns = numbers[np.minimum(np.arange(WIDTH) * len(numbers) // WIDTH, len(numbers) - 1)]
    heights = np.nan_to_num(np.clip(columns / top, 0, 1)) * (HEIGHT - 2)
    rows = np.arange(HEIGHT)[:, None]
    pixels[(rows >= HEIGHT - 1 - heights[None, :]) & np.isfinite(columns)[None, :]] = _AREA
    pixels[HEIGHT - 1] = _BASE
    return _encode(pixels)


def _encode(pixels: "np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]") -> bytes:
    height, width, _ = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
