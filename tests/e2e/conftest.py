"""One demo cluster and one browser for all tests of a module.

Not of the session: while Playwright is open its event loop runs in this thread, and no asynchronous test could follow.
"""

import asyncio
import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.browser import chromium
from servers.demo import running_demo

from clusterscape.runtime.compiling import choose_folder, compile_ahead, find_marker
from clusterscape.warm_up import WarmUp

PATIENCE_MS = 60_000
"""How long the page may take for anything: on a busy machine long, and a test that passes never waits for it."""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiles before the first page is opened: otherwise the first simulation of a checkout takes minutes."""
    marker = find_marker(choose_folder(tmp_path_factory.getbasetemp()))
    if not marker.exists():
        asyncio.run(compile_ahead(WarmUp(), marker))


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A demo of 256 GPUs; while a test is written, one that runs already: CLUSTERSCAPE_DEMO_URL."""
    running = os.environ.get("CLUSTERSCAPE_DEMO_URL")
    if running:
        yield running
        return
    with running_demo(tmp_path_factory.mktemp("demo"), gpus=256) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, demo_url: str) -> Iterator[Page]:
    """A fresh page on the demo; a script error or a failed request of the page's fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=demo_url, color_scheme="dark")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert not problems
