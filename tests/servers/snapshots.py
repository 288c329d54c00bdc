"""Pictures of the page, kept small and compared so coarsely that fonts and single words do not matter, but a lost panel does.

A picture is shrunk by the browser that took it, so no library for images is needed.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Page

KEPT_SCALE = 3.2
"""Kept pictures are so many times smaller than the window: small files that can still be looked at."""
COMPARED_SCALE = 8
TILE = 5
"""Pixels of the compared picture: 40 of the page."""
TILE_DIFFERS = 8.0
"""Levels of 256 by which the mean color of a tile must differ to count: more than other letters in its place make."""

MOST_TILES = 0.02
"""Share of tiles that may differ. Another font makes half of it, a lost dialog five times as much."""
MOST_MEAN = 6.0
"""Levels of 256."""

Pixels = npt.NDArray[np.float64]

_DRAWN = """async ({png, width, height}) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width, height);
"""
"""The picture drawn at another size; what is answered of it follows."""
_SHRINK = (
    _DRAWN
    + """  return canvas.toDataURL("image/png").split(",")[1];
}"""
)
_READ = (
    _DRAWN
    + """  const bytes = context.getImageData(0, 0, width, height).data;
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""
)


@dataclass(frozen=True)
class Difference:
    """How far two pictures are apart: the mean over all pixels in levels of 256, and the share of tiles that differ."""

    mean: float
    tiles: float

    @property
    def is_alike(self) -> bool:
        """Whether other fonts, hinting or words explain it."""
        return self.mean <= MOST_MEAN and self.tiles <= MOST_TILES


class Shrinker:
    """Shrinks and reads pictures on a page of its own."""

    def __init__(self, page: Page) -> None:
        """``page``: an empty one."""
        self._page = page

    def shrink(self, png: bytes, width: int, height: int) -> bytes:
        """A picture of the window, as it is kept."""
        size = {"width": round(width / KEPT_SCALE), "height": round(height / KEPT_SCALE)}
        return base64.b64decode(self._page.evaluate(_SHRINK, {"png": base64.b64encode(png).decode(), **size}))

    def compare(self, picture: bytes, kept: Path, width: int, height: int) -> Difference:
        """Both as they are kept; ``width`` and ``height`` are those of the window."""
        return compare_pixels(self._read(picture, width, height), self._read(kept.read_bytes(), width, height))

    def _read(self, png: bytes, width: int, height: int) -> Pixels:
        size = {"width": width // COMPARED_SCALE, "height": height // COMPARED_SCALE}
        encoded = self._page.evaluate(_READ, {"png": base64.b64encode(png).decode(), **size})
        flat = np.frombuffer(base64.b64decode(encoded), dtype=np.uint8)
        return flat.reshape(size["height"], size["width"], 4)[:, :, :3].astype(np.float64)


def compare_pixels(a: Pixels, b: Pixels) -> Difference:
    """Of two small pictures of the same size."""
    tiles = np.abs(_mean_tiles(a) - _mean_tiles(b)).max(axis=2)
    return Difference(mean=float(np.abs(a - b).mean()), tiles=float((tiles > TILE_DIFFERS).mean()))


def _mean_tiles(pixels: Pixels) -> Pixels:
    rows, columns = pixels.shape[0] // TILE, pixels.shape[1] // TILE
    cut = pixels[: rows * TILE, : columns * TILE]
    means: Pixels = cut.reshape(rows, TILE, columns, TILE, 3).mean(axis=(1, 3))
    return means
