"""Prints an HTML report to PDF with the Chromium of this machine."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from clusterscape.errors import ClusterScapeError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
TIMEOUT_S = 180
DRAWN_MS = 15_000
"""Virtual time that the page has to draw its charts; nothing waits that long."""


def find_browser() -> str | None:
    """The path of an installed browser that prints without a window."""
    return next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)


def print_pdf(output: Path, write_page: Callable[[Path], None], *, timeout_s: float = TIMEOUT_S) -> None:
    """Print the page that ``write_page`` writes. Raises ClusterScapeError if there is no browser, or it fails."""
    browser = find_browser()
    if browser is None:
        raise ClusterScapeError(
            "PDF needs Chromium or Chrome, and none is installed",
            hint="Install chromium, or write .html and print it from any browser.",
        )
    with tempfile.TemporaryDirectory(prefix="clusterscape-pdf-") as folder:
        page, printed = Path(folder) / "report.html", Path(folder) / "report.pdf"
        write_page(page)
        words = [
            browser,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile",
            f"--virtual-time-budget={DRAWN_MS}",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            words.insert(1, "--no-sandbox")  # Chromium refuses to sandbox itself as root; the page is our own
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise ClusterScapeError(
                f"{browser} did not print the report within {timeout_s:g} s", hint="Write .html and print that."
            ) from None
        if not printed.exists() or printed.read_bytes()[:5] != b"%PDF-":
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise ClusterScapeError(f"{browser} could not print the report: {last}", hint="Write .html and print that.")
        try:
            shutil.copyfile(printed, output)
        except OSError as error:
            raise ClusterScapeError(f"cannot write {output}: {error.strerror}", hint="Choose another file.") from None
