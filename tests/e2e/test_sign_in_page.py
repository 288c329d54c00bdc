"""Sign-in on the page, the account menu, and the administrator's page; with a password and through a real provider."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from servers.oidc import CLIENT_ID, CLIENT_SECRET, oidc_server
from servers.own_server import own_server
from servers.programs import free_port

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, Role, Way
from clusterscape.serve.identity.passwords import hash_password
from clusterscape.settings import StorageSettings
from clusterscape.store.access import open_access_store

pytestmark = [pytest.mark.browser, pytest.mark.server]

PASSWORD = "correct horse battery staple"
CONFIG = """
cluster = "guarded"
[storage]
data_dir = "{folder}/data"
[auth]
modes = ["local", "oidc"]
roles = {{ "gpu-leads" = "lead" }}
projects_pattern = "project-(.+)"
[auth.oidc]
issuer = "{issuer}"
client_id = "{client}"
client_secret = "{secret}"
scopes = ["openid", "profile", "groups"]
provider_name = "Example"
"""


@dataclass(frozen=True)
class GuardedServer:
    url: str
    folder: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    folder = tmp_path_factory.mktemp("guarded")
    store = open_access_store(StorageSettings(data_dir=folder / "data"))
    hashed = hash_password(PASSWORD)
    for login, role in (("root", Role.ADMIN), ("ada", Role.RESEARCHER)):
        account = Account(way=Way.LOCAL, login=login, role=role, title=f"{login.title()} L.", created_at=UnixMs(1))
        store.add_account(account, password_hash=hashed)
    store.close()
    port = free_port()
    callback = f"http://127.0.0.1:{port}/api/v1/session/oidc/callback"
    with oidc_server(redirect_uris=[callback], groups={"lin": ["gpu-leads", "project-vision"]}) as provider:
        config = CONFIG.format(folder=folder, issuer=provider.url, client=CLIENT_ID, secret=CLIENT_SECRET)
        with own_server(folder, config, port=port) as url:
            yield GuardedServer(url, folder)


@pytest.fixture
def page(browser: Browser, server: GuardedServer) -> Iterator[Page]:
    """A fresh browser; a policy violation or a script error fails the test. Refused requests are expected here."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=server.url, color_scheme="light")
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if "Content Security" in message.text else None)
    yield page
    context.close()
    assert not problems


def sign_in(page: Page, login: str, password: str = PASSWORD) -> None:
    page.get_by_label("User name").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def account_menu(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Account: {name}").click()


def test_password_opens_the_page_by_keyboard_and_sign_out_shuts_it_when_used(page: Page) -> None:
    page.goto("/rules?q=idle")
    expect(page.get_by_role("link", name="Sign in with Example")).to_be_visible()
    sign_in(page, "ada", "wrong")
    expect(page.get_by_role("alert")).to_contain_text("User name or password is wrong.")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    assert page.url.endswith("/rules?q=idle"), "the link is shown that was asked for"
    account_menu(page, "Ada L.")
    expect(page.get_by_text("ada · researcher")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Accounts")).to_have_count(0)
    page.get_by_role("menuitem", name="Sign out", exact=True).click()
    expect(page.get_by_label("User name")).to_be_visible()
    page.reload()
    expect(page.get_by_label("User name")).to_be_visible()


def test_page_goes_on_where_it_was_when_a_session_has_ended(page: Page) -> None:
    page.goto("/access")
    expect(page.get_by_text("Sign in to continue.")).to_be_visible()
    sign_in(page, "ada")
    expect(page.get_by_role("heading", name="My tokens")).to_be_visible()
    page.context.clear_cookies()
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Rules").click()
    expect(page.get_by_text("Your session has expired.")).to_be_visible()
    sign_in(page, "ada")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    assert page.url.endswith("/rules")


def test_provider_opens_the_page_when_it_names_somebody(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="Sign in with Example").click()
    page.locator("input[name=login]").fill("lin")
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    account_menu(page, "lin by name")
    expect(page.get_by_text("lin · lead of vision")).to_be_visible()


def test_reason_is_said_when_a_provider_did_not_let_somebody_in(page: Page) -> None:
    page.goto("/?sign_in=no_role")
    expect(page.get_by_role("alert")).to_contain_text("has no access")
    expect(page).to_have_url(re.compile(r"/$"))


def test_token_is_shown_once_and_ends_when_it_is_revoked(page: Page, server: GuardedServer) -> None:
    page.goto("/access")
    sign_in(page, "ada")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Token name").fill("nightly export")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("output").inner_text()
    assert secret.startswith("cst_")
    browser = page.context.browser
    assert browser is not None
    script = browser.new_context(base_url=server.url, extra_http_headers={"Authorization": f"Bearer {secret}"})
    assert script.request.get("/api/v1/cluster").status == 200
    page.get_by_role("button", name="Close details").click()
    expect(page.get_by_text(secret)).to_have_count(0)
    page.get_by_role("row", name=re.compile("nightly export")).click()
    page.get_by_role("button", name="Revoke token").click()
    expect(page.get_by_role("row", name=re.compile("nightly export.*revoked"))).to_be_visible()
    assert script.request.get("/api/v1/cluster").status == 401
    script.close()


def test_administrator_makes_accounts_and_reads_the_log_when_signed_in(page: Page) -> None:
    page.goto("/access?access=accounts")
    sign_in(page, "root")
    page.get_by_role("button", name="New account").click()
    form = page.get_by_role("complementary", name="Details")
    form.get_by_label("User name").fill("joe")
    form.get_by_label("Password").fill("a long enough passphrase")
    form.get_by_label("Role").select_option("lead")
    form.get_by_label("Projects").fill("speech nlp")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("row", name=re.compile("joe.*Project lead.*nlp, speech"))).to_be_visible()
    page.get_by_role("row", name=re.compile("joe")).click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("row", name=re.compile("joe.*disabled"))).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Confirm: remove").click()
    expect(page.get_by_role("row", name=re.compile("joe"))).to_have_count(0)
    page.get_by_role("button", name="Audit log").click()
    for action in ("account.add", "account.change", "account.remove"):
        expect(page.get_by_role("row", name=re.compile(f"root.*{re.escape(action)}.*joe"))).to_be_visible()


def test_secrets_are_in_no_log_and_in_no_answer_when_the_server_has_run(page: Page, server: GuardedServer) -> None:
    page.goto("/")
    sign_in(page, "root")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    (cookie,) = [kept for kept in page.context.cookies() if kept["name"] == "clusterscape_session"]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    secrets = [CLIENT_SECRET, PASSWORD, str(cookie["value"])]
    text = (server.folder / "serve.log").read_text() + page.content()
    text += page.context.request.get("/api/v1/audit").text() + page.context.request.get("/metrics").text()
    assert [secret for secret in secrets if secret in text] == []
