"""The installed Chromium, driven by Playwright."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from servers.programs import need_program


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser; skips or fails (CI) where it is not installed."""
    program = need_program("chromium", "chromium")
    arguments = [
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses to sandbox itself as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=arguments)
        yield browser
        browser.close()
