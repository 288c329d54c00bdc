"""Short films of the page for the docs: frames taken one by one while the page's own clock stands still between them.

So a film is smooth and the same length on a slow machine. Only timers and animation frames of the page are held; what it asks the
server for goes on.
"""

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page

FRAMES_A_SECOND = 10
FRAME_MS = 1000 // FRAMES_A_SECOND
MOST_BYTES = 1_000_000
MOST_S = 6.0

POINTER = """
addEventListener("DOMContentLoaded", () => {
  const pointer = document.createElement("div");
  pointer.style.cssText = "position: fixed; left: 0; top: 0; z-index: 2147483647; pointer-events: none; opacity: 0";
  pointer.innerHTML =
    '<svg width="22" height="28"><path d="M2 2v20l5-4 3 8 4-2-3-7h7z" fill="#fff" stroke="#111" stroke-width="1.6"/></svg>';
  document.documentElement.append(pointer);
  addEventListener("mousemove", ({ clientX, clientY }) => {
    pointer.style.opacity = 1;
    pointer.style.transform = `translate(${clientX - 2}px, ${clientY - 2}px)`;
  }, true);
});
"""
"""Screenshots have no pointer; this one follows the mouse."""


class Film:
    """One film of one page. Take frames with ``roll``, ``point_at`` and ``click``; ``write`` at the end."""

    def __init__(self, page: Page, *, width: int) -> None:
        self._page = page
        self._width = width
        self._frames: list[Image.Image] = []
        self._lengths_ms: list[int] = []
        self._at = (0.0, 0.0)

    @property
    def length_s(self) -> float:
        """Length of the frames taken so far."""
        return sum(self._lengths_ms) / 1000

    def shoot(self, length_s: float = 1 / FRAMES_A_SECOND) -> None:
        """One frame that is shown for this time."""
        shot = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
        size = (self._width, round(shot.height * self._width / shot.width))
        self._frames.append(shot.resize(size, Image.Resampling.LANCZOS))
        self._lengths_ms.append(round(length_s * 1000))

    def hold(self, length_s: float) -> None:
        """The last frame is shown for this time."""
        self._lengths_ms[-1] += round(length_s * 1000)

    def stand_still(self) -> None:
        """From here on the page's clock goes only while frames are taken: what flies is seen frame by frame."""
        self._page.clock.pause_at(self._page.evaluate("Date.now() / 1000 + 1"))

    def let_go(self) -> None:
        """From here on it goes as it does for readers."""
        self._page.clock.resume()

    def roll(self, length_s: float) -> None:
        """Let the page move on, a frame at a time."""
        for _ in range(round(length_s * FRAMES_A_SECOND)):
            self._page.clock.run_for(FRAME_MS)
            self.shoot()

    def point_at(self, place: Locator, share: tuple[float, float] = (0.5, 0.5), *, length_s: float = 0.4) -> None:
        """Move the pointer there; ``share`` of the element's width and height."""
        box = place.bounding_box()
        assert box is not None
        aim = (box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"])
        count = max(1, round(length_s * FRAMES_A_SECOND))
        from_x, from_y = self._at
        for step in range(1, count + 1):
            ease = 1 - (1 - step / count) ** 2
            self._page.mouse.move(from_x + (aim[0] - from_x) * ease, from_y + (aim[1] - from_y) * ease)
            self._page.clock.run_for(FRAME_MS)
            self.shoot()
        self._at = aim

    def click(self, place: Locator, *, length_s: float = 0.4) -> None:
        """Point at the middle of it, and click; what follows is seen by ``roll``."""
        self.point_at(place, length_s=length_s)
        self._page.mouse.down()
        self._page.mouse.up()

    def click_and_go(self, place: Locator, *, length_s: float = 0.4) -> None:
        """The same, but the effects are not filmed until the next frame."""
        self.point_at(place, length_s=length_s)
        self.let_go()
        place.click()

    def write(self, path: Path) -> None:
        """As an animated WebP that repeats; a film that is too long or too large is refused."""
        assert self.length_s <= MOST_S, f"{path.name} lasts {self.length_s:.1f} s"
        first, *others = self._frames
        first.save(
            path, save_all=True, append_images=others, duration=self._lengths_ms, loop=0, quality=60, method=6, minimize_size=True
        )  # fmt: skip
        size = path.stat().st_size
        assert size <= MOST_BYTES, f"{path.name} has {size:,} bytes"
