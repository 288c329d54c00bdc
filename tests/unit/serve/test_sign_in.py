"""Sign-in with a password or the server's token: cookies, sessions, throttling, and requests of other sites."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from clusters.guarded import FROM_PAGE, PASSWORD, GuardedSite, guarded_site, sign_in
from clusters.small import SmallCluster
from fastapi.testclient import TestClient

from clusterscape.model.access import Outcome, Role, Scope, Way
from clusterscape.serve.identity import passwords
from clusterscape.serve.identity.security_headers import ALWAYS
from clusterscape.serve.identity.sessions import digest_of

TOKEN = "0123456789abcdef"
HTTPS = "https://gpus.example.org"
VIEW = {"version": 1, "title": "By project"}


@pytest.fixture
def site(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[GuardedSite]:
    with guarded_site(small_cluster, tmp_path, modes=("local",)) as site:
        site.add_account("ada", Role.RESEARCHER)
        yield site


@pytest.fixture
def client(site: GuardedSite) -> TestClient:
    return site.client()


def status(client: TestClient, path: str = "/api/v1/cluster") -> int:
    return client.get(path).status_code


def test_only_page_health_and_session_are_open_when_nobody_is_signed_in(client: TestClient) -> None:
    for path in ("/api/v1/cluster", "/api/v1/live", "/api/v1/accounts", "/api/v1/nothing", "/metrics", "/openapi.json"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "access"), path
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/healthz", "/", "/overview"):
        assert status(client, path) == 200
    session = client.get("/api/v1/session").json()
    assert session["who"] is None
    assert (session["takes_password"], session["takes_token"], session["provider"]) == (True, False, None)


def test_password_opens_the_page_when_it_is_right(client: TestClient) -> None:
    sign_in(client, "ada")
    assert status(client) == 200
    account = client.get("/api/v1/session").json()["who"]
    assert (account["login"], account["role"], account["way"]) == ("ada", "researcher", "local")


def test_wrong_name_and_wrong_password_give_the_same_error_when_signing_in(client: TestClient) -> None:
    answers = [
        client.post("/api/v1/session", json={"login": login, "password": "wrong password"})
        for login in ("ada", "nobody")
    ]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert answers[0].text == answers[1].text


def test_unknown_name_costs_a_hash_when_a_password_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []

    class Counting:
        def verify(self, stored: str, password: str) -> bool:
            verified.append(stored)
            return True

    dummy_hash = passwords._dummy_hash()
    monkeypatch.setattr(passwords, "_HASHER", Counting())
    assert not passwords.verify_password(None, "anything")
    assert verified == [dummy_hash]


def test_cookie_is_kept_from_scripts_and_other_sites_when_set(site: GuardedSite) -> None:
    plain = site.client().post("/api/v1/session", json={"login": "ada", "password": PASSWORD}).headers["set-cookie"]
    assert plain.startswith("clusterscape_session=")
    assert "HttpOnly" in plain
    assert "SameSite=Lax" in plain
    assert "Path=/" in plain
    assert "Secure" not in plain
    assert "Domain" not in plain
    over_https = site.client(HTTPS)
    secure = over_https.post("/api/v1/session", json={"login": "ada", "password": PASSWORD}).headers["set-cookie"]
    assert secure.startswith("__Host-clusterscape_session=")
    assert "Secure" in secure
    assert status(over_https) == 200


def test_store_holds_no_session_id_when_somebody_is_signed_in(client: TestClient, site: GuardedSite) -> None:
    sign_in(client, "ada")
    session_id = client.cookies["clusterscape_session"]
    assert len(session_id) >= 43
    (session,) = site.identity.store.sessions(Way.LOCAL, "ada")
    assert session.digest == digest_of(session_id)
    for path in site.static.parent.glob("access/*"):
        content = path.read_bytes()
        assert session_id.encode() not in content
        assert PASSWORD.encode() not in content


def test_session_id_is_never_one_that_the_browser_brought_when_signing_in(client: TestClient) -> None:
    planted = {"Cookie": "clusterscape_session=planted-by-somebody-else"}
    form = {"login": "ada", "password": PASSWORD}
    assert client.post("/api/v1/session", json=form, headers=planted).status_code == 204
    first = client.cookies["clusterscape_session"]
    assert first != "planted-by-somebody-else"
    old = TestClient(client.app, cookies={"clusterscape_session": first})
    sign_in(client, "ada")
    assert client.cookies["clusterscape_session"] != first
    assert status(client) == 200
    assert status(old) == 401, "the session of before has ended"


def test_session_ends_when_it_is_idle_or_old(client: TestClient, site: GuardedSite) -> None:
    sign_in(client, "ada")
    for _ in range(3):
        site.pass_time(11)
        assert status(client) == 200
    site.pass_time(12.1)
    assert status(client) == 401
    sign_in(client, "ada")
    for _ in range(16):
        site.pass_time(10)
        assert status(client) == 200
    site.pass_time(10)
    assert status(client) == 401, "a week is over, though it was used all the time"
    assert site.identity.store.sessions(Way.LOCAL, "ada") == []


def test_sign_out_ends_this_or_every_session_when_asked(site: GuardedSite) -> None:
    first, second, third = (site.client() for _ in range(3))
    for client in (first, second, third):
        sign_in(client, "ada")
    kept = first.cookies["clusterscape_session"]
    assert first.delete("/api/v1/session", headers=FROM_PAGE).status_code == 204
    assert "clusterscape_session" not in first.cookies
    first.cookies.set("clusterscape_session", kept)
    assert status(first) == 401, "the session is over, not only its cookie"
    assert status(second) == 200
    assert second.delete("/api/v1/sessions", headers=FROM_PAGE).status_code == 204
    assert status(third) == 401


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (FROM_PAGE, 200),
        ({**FROM_PAGE, "Sec-Fetch-Site": "same-origin"}, 200),
        ({**FROM_PAGE, "Origin": "http://testserver"}, 200),
        ({}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 403),
        ({**FROM_PAGE, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**FROM_PAGE, "Sec-Fetch-Site": "same-site"}, 403),
        ({**FROM_PAGE, "Origin": "https://evil.example"}, 403),
        ({**FROM_PAGE, "Origin": "null"}, 403),
    ],
)
def test_change_is_refused_when_another_sites_page_could_have_sent_it(
    client: TestClient, headers: dict[str, str], expected: int
) -> None:
    sign_in(client, "ada")
    answer = client.put("/api/v1/views/mine", json=VIEW, headers=headers)
    assert answer.status_code == expected, answer.text


def test_sign_in_is_refused_when_another_sites_page_sent_it(client: TestClient) -> None:
    form = {"login": "ada", "password": PASSWORD}
    answer = client.post("/api/v1/session", json=form, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_guessing_is_slowed_down_when_passwords_are_wrong(small_cluster: SmallCluster, tmp_path: Path) -> None:
    with guarded_site(small_cluster, tmp_path, modes=("local",), login_attempts=3, login_window_s=60) as site:
        site.add_account("ada", Role.RESEARCHER)
        client, elsewhere = site.client(), site.client(address="198.51.100.9")
        for _ in range(3):
            assert client.post("/api/v1/session", json={"login": "ada", "password": "wrong"}).status_code == 401
        refused = client.post("/api/v1/session", json={"login": "ada", "password": PASSWORD})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "throttled")
        assert refused.headers["retry-after"] == "60"
        sign_in(elsewhere, "ada")
        site.pass_time(61 / 3600)
        sign_in(client, "ada")


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/cluster", "/api/v1/session", "/assets/none.js"])
def test_every_answer_forbids_foreign_scripts_and_frames_when_sent(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    for name, value in ALWAYS.items():
        assert headers[name] == value
    policy = headers["content-security-policy"]
    assert "unsafe-eval" not in policy
    assert "script-src 'self';" in policy
    assert "strict-transport-security" not in headers


def test_security_headers_are_sent_when_the_server_fails(site: GuardedSite) -> None:
    @site.app.get("/api/broken")
    def fail() -> None:
        raise RuntimeError("a defect")

    site.app.router.routes.insert(0, site.app.router.routes.pop())  # before the page, which takes every path
    bearer = {"Authorization": f"Bearer {site.make_token(site.add_account('bob', Role.OPERATOR), Scope.READ)}"}
    client = TestClient(site.app, raise_server_exceptions=False)
    answer = client.get("/api/broken", headers=bearer)
    assert answer.status_code == 500
    assert answer.headers["content-security-policy"] == ALWAYS["Content-Security-Policy"]


def test_input_is_not_echoed_when_a_form_is_wrong(client: TestClient) -> None:
    for form in ({"login": "ada", "password": [PASSWORD]}, {"token": {"x": PASSWORD}}, {"password": PASSWORD * 100}):
        answer = client.post("/api/v1/session", json=form)
        assert answer.status_code == 422
        assert PASSWORD not in answer.text


def test_strict_transport_security_is_sent_when_the_page_came_over_https(site: GuardedSite) -> None:
    assert "max-age" in site.client(HTTPS).get("/").headers["strict-transport-security"]


def test_responses_are_not_shared_when_they_depend_on_the_viewer(client: TestClient) -> None:
    sign_in(client, "ada")
    answer = client.get("/api/v1/cluster")
    assert answer.headers["cache-control"] == "no-store"
    assert "Cookie" in client.get("/api/v1/snapshot").headers["vary"]


def test_static_token_opens_everything_when_it_is_the_only_way(small_cluster: SmallCluster, tmp_path: Path) -> None:
    with guarded_site(small_cluster, tmp_path, token=TOKEN) as site:
        client = site.client()
        assert status(client) == 401
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/v1/cluster", headers=bearer).status_code == 200
        assert client.put("/api/v1/views/mine", json=VIEW, headers=bearer).status_code == 200, "no cookie, no forgery"
        assert client.get("/api/v1/cluster", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.post("/api/v1/session", json={"token": "wrong"}).status_code == 401
        assert client.post("/api/v1/session", json={"token": TOKEN}).status_code == 204
        account = client.get("/api/v1/session").json()["who"]
        assert (account["login"], account["role"], account["way"]) == (None, "admin", "static")
        assert TOKEN not in client.cookies["clusterscape_session"]
        cookies = dict(client.cookies)
    with guarded_site(small_cluster, tmp_path, token="another-token-of-the-site") as site:
        other = site.client()
        other.cookies.update(cookies)
        assert status(other) == 401, "with the token its sessions are gone"


def test_own_password_is_changed_and_other_sessions_end_when_asked(site: GuardedSite) -> None:
    client, other = site.client(), site.client()
    sign_in(client, "ada")
    sign_in(other, "ada")
    change = {"old": PASSWORD, "new": "a better passphrase"}
    for wrong, expected in (({**change, "new": "short"}, 422), ({**change, "old": "wrong"}, 401)):
        assert client.put("/api/v1/session/password", json=wrong, headers=FROM_PAGE).status_code == expected
    assert client.put("/api/v1/session/password", json=change, headers=FROM_PAGE).status_code == 204
    assert status(client) == 200
    assert status(other) == 401
    sign_in(site.client(), "ada", "a better passphrase")


def test_user_is_signed_out_immediately_when_the_account_is_closed(site: GuardedSite, client: TestClient) -> None:
    admin = site.client()
    site.add_account("root", Role.ADMIN)
    sign_in(client, "ada")
    sign_in(admin, "root")
    shut = admin.put("/api/v1/accounts/local/ada", json={"is_disabled": True}, headers=FROM_PAGE)
    assert shut.status_code == 200
    assert status(client) == 401
    refused = client.post("/api/v1/session", json={"login": "ada", "password": PASSWORD})
    assert refused.status_code == 401


def test_sign_ins_are_logged_when_they_succeed_or_fail(site: GuardedSite, client: TestClient) -> None:
    client.post("/api/v1/session", json={"login": "ada", "password": "wrong"})
    client.post("/api/v1/session", json={"login": f"{PASSWORD} typed into the wrong field", "password": "x"})
    sign_in(client, "ada")
    noted = site.audited(action="sign_in")
    assert [(entry.outcome, entry.actor, entry.address) for entry in noted] == [
        (Outcome.REFUSED, "ada", "192.0.2.7"),
        (Outcome.REFUSED, "(no user name)", "192.0.2.7"),
        (Outcome.DONE, "ada", "192.0.2.7"),
    ]


def test_password_is_rehashed_when_its_hash_was_weaker(
    site: GuardedSite, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stronger = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
    monkeypatch.setattr(passwords, "_HASHER", stronger)
    sign_in(client, "ada")
    renewed = site.identity.store.password_hash("ada")
    assert renewed is not None
    assert renewed.startswith("$argon2id$v=19$m=16,t=2,p=1$")
    sign_in(client, "ada")


def test_passwords_are_hashed_as_rfc_9106_says_when_nothing_else_is_set() -> None:
    assert passwords.hash_password(PASSWORD).startswith("$argon2id$v=19$m=65536,t=3,p=4$")
