"""Pages without live values look as they did: compared with pictures in ``snapshots``, so coarsely that only a break fails.

CLUSTERSCAPE_SNAPSHOTS=renew writes the pictures again; look at them before committing.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.own_server import own_server
from servers.snapshots import Difference, Shrinker

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, Role, Way
from clusterscape.serve.identity.passwords import hash_password
from clusterscape.settings import StorageSettings
from clusterscape.store.access import open_access_store

pytestmark = [pytest.mark.browser, pytest.mark.server]

KEPT = Path(__file__).parent / "snapshots"
OUTPUT = Path(__file__).parent / "output"
RENEWS = os.environ.get("CLUSTERSCAPE_SNAPSHOTS") == "renew"
LARGEST_BYTES = 60_000
SETTLES_WITHIN_S = 20
WAIT_MS = 120_000
PASSWORD = "correct horse battery staple"
CONFIG = """
cluster = "empty"
[storage]
data_dir = "{folder}/data"
[auth]
modes = ["local"]
"""
STILL = """
[aria-label="Time"], time, output { visibility: hidden !important }
* { caret-color: transparent !important }
"""
"""Elements that show the time of day are hidden."""


@dataclass(frozen=True)
class State:
    """A page state: address, theme, window, and actions before the picture is taken."""

    address: str
    theme: str
    act: Callable[[Page], None]
    loses: str
    """A style that breaks the page, to prove that the test can fail."""
    width: int = 1280
    height: int = 800
    is_signed_in: bool = True


def see_sign_in(page: Page) -> None:
    expect(page.get_by_label("Password")).to_be_visible()


def see_narrow_site(page: Page) -> None:
    expect(page.get_by_text("No GPUs yet")).to_be_visible()
    expect(page.get_by_text("clusterscape init")).to_be_visible()


def see_empty_site(page: Page) -> None:
    see_narrow_site(page)
    expect(page.get_by_role("list", name="Layers, outermost first")).to_be_visible()


def open_layer(page: Page) -> None:
    see_empty_site(page)
    page.get_by_role("button", name="Settings of User").click()
    expect(page.get_by_role("dialog", name="Settings of User")).to_be_visible()


def open_rule_editor(page: Page) -> None:
    page.get_by_role("button", name="New rule").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def see_rule_book(page: Page) -> None:
    expect(page.get_by_role("region", name="All rules").get_by_role("listitem").first).to_be_visible()


def open_keys(page: Page) -> None:
    see_empty_site(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def open_tour(page: Page) -> None:
    see_empty_site(page)
    page.get_by_role("button", name="Take the tour").click()
    page.get_by_role("dialog", name="A square is a GPU").get_by_role("button", name="Next").click()
    expect(page.get_by_role("dialog", name="Arrange squares to answer a question")).to_be_visible()


def open_menu(page: Page) -> None:
    see_empty_site(page)
    page.get_by_role("button", name="Account").click()
    expect(page.get_by_role("menuitem", name="Sign out", exact=True)).to_be_visible()


def open_search(page: Page) -> None:
    see_empty_site(page)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", name="Theme: dark")).to_be_visible()


def open_account_form(page: Page) -> None:
    page.get_by_role("button", name="New account").click()
    expect(page.get_by_role("button", name="Create account")).to_be_visible()


def see_tokens(page: Page) -> None:
    expect(page.get_by_role("heading", name="My tokens")).to_be_visible()


NO_CARD = "main > * { visibility: hidden }"
NO_CONTROLS = 'aside[aria-label="Controls"] { visibility: hidden }'
NO_DIALOG = "[role=dialog] { visibility: hidden }"
OTHER_THEME = ":root { color-scheme: light !important }"

STATES = {
    "sign-in-dark": State("/", "dark", see_sign_in, NO_CARD, is_signed_in=False),
    "empty-site-light": State("/", "light", see_empty_site, NO_CONTROLS),
    "empty-site-dark": State("/", "dark", see_empty_site, NO_CONTROLS),
    "empty-site-narrow": State("/", "light", see_narrow_site, NO_CARD, width=704, height=800),
    "layer-settings-dark": State("/", "dark", open_layer, OTHER_THEME),
    "rule-editor-light": State("/rules?list=rules", "light", open_rule_editor, NO_DIALOG),
    "rule-book-dark": State(
        "/rules?list=rules", "dark", see_rule_book, 'section[aria-label="All rules"] { display: none }'
    ),
    "keys-dark": State("/", "dark", open_keys, NO_DIALOG),
    "tour-light": State("/", "light", open_tour, NO_DIALOG),
    "account-menu-light": State("/", "light", open_menu, NO_CONTROLS),
    "search-dark": State("/", "dark", open_search, NO_DIALOG),
    "tokens-dark": State("/access", "dark", see_tokens, NO_CONTROLS),
    "new-account-light": State(
        "/access?access=accounts", "light", open_account_form, 'aside[aria-label="Details"] { visibility: hidden }'
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site without sources, where an administrator may sign in."""
    folder = tmp_path_factory.mktemp("empty")
    store = open_access_store(StorageSettings(data_dir=folder / "data"))
    root = Account(way=Way.LOCAL, login="root", role=Role.ADMIN, title="Root", created_at=UnixMs(1))
    store.add_account(root, password_hash=hash_password(PASSWORD))
    store.close()
    with own_server(folder, CONFIG.format(folder=folder)) as url:
        yield url


@pytest.fixture(scope="module")
def shrinker(browser: Browser) -> Iterator[Shrinker]:
    page = browser.new_page()
    yield Shrinker(page)
    page.close()


@pytest.fixture(scope="module")
def cookies(browser: Browser, site: str) -> list[Any]:
    """Those of somebody who is in."""
    context = browser.new_context(base_url=site)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto("/")
    page.get_by_label("User name").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("button", name="Account")).to_be_visible()
    kept: list[Any] = list(context.cookies())
    context.close()
    return kept


@dataclass(frozen=True)
class Studio:
    """Where pictures are taken."""

    browser: Browser
    site: str
    cookies: list[Any]
    shrinker: Shrinker

    @contextmanager
    def page_in(self, state: State, density: float = 1) -> Iterator[Page]:
        """The page in this state; ``density``: device pixels for each of the page."""
        context = self.browser.new_context(
            viewport={"width": state.width, "height": state.height},
            base_url=self.site,
            color_scheme="dark" if state.theme == "dark" else "light",
            reduced_motion="reduce",
            device_scale_factor=density,
            bypass_csp=True,
        )
        if state.is_signed_in:
            context.add_cookies(self.cookies)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(state.address)
        state.act(page)
        page.evaluate("document.fonts.ready")
        yield page
        context.close()

    def take(self, page: Page, state: State) -> bytes:
        """A picture as it is kept."""
        page.mouse.move(state.width - 1, state.height - 1)  # nothing is pointed at
        shot = page.screenshot(style=STILL, animations="disabled", caret="hide")
        return self.shrinker.shrink(shot, state.width, state.height)

    def expect_alike(self, name: str, page: Page) -> None:
        """Waits until the page looks as it did: popups are positioned after they appear."""
        end = time.monotonic() + SETTLES_WITHIN_S
        difference = self.compare(name, picture := self.take(page, STATES[name]))
        while not difference.is_alike and time.monotonic() < end:
            page.wait_for_timeout(300)
            difference = self.compare(name, picture := self.take(page, STATES[name]))
        if not difference.is_alike:
            OUTPUT.mkdir(exist_ok=True)
            (OUTPUT / f"{name}.png").write_bytes(picture)
        assert difference.is_alike, f"{name} looks different ({difference}); see {OUTPUT / name}.png"

    def compare(self, name: str, picture: bytes) -> Difference:
        """Compares with the stored picture of this name."""
        kept = KEPT / f"{name}.png"
        assert kept.exists(), f"there is no {kept.name}; CLUSTERSCAPE_SNAPSHOTS=renew takes it"
        return self.shrinker.compare(picture, kept, STATES[name].width, STATES[name].height)


@pytest.fixture(scope="module")
def studio(browser: Browser, site: str, cookies: list[Any], shrinker: Shrinker) -> Studio:
    return Studio(browser, site, cookies, shrinker)


@pytest.mark.parametrize("name", STATES)
def test_page_looks_as_it_did_when_nothing_is_lost_of_it(name: str, studio: Studio) -> None:
    state = STATES[name]
    with studio.page_in(state) as page:
        if RENEWS:
            page.wait_for_timeout(2_000)
            (KEPT / f"{name}.png").write_bytes(studio.take(page, state))
            assert (KEPT / f"{name}.png").stat().st_size <= LARGEST_BYTES
        studio.expect_alike(name, page)
        page.add_style_tag(content=state.loses)
        lost = studio.compare(name, studio.take(page, state))
    assert not lost.is_alike, f"{name} without {state.loses} looks the same ({lost})"


@pytest.mark.parametrize("name", ["empty-site-dark", "rule-editor-light"])
def test_page_looks_as_it_did_when_the_screen_and_its_fonts_are_others(name: str, studio: Studio) -> None:
    with studio.page_in(STATES[name], density=1.5) as page:
        page.add_style_tag(content="body, body * { font-family: sans-serif !important }")
        studio.expect_alike(name, page)


def test_page_does_not_look_as_it_did_when_its_styles_are_missing(studio: Studio) -> None:
    state = STATES["empty-site-light"]
    with studio.page_in(state) as page:
        page.evaluate("for (const sheet of document.styleSheets) sheet.disabled = true")
        assert not studio.compare("empty-site-light", studio.take(page, state)).is_alike
