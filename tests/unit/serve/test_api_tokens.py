"""API tokens, accounts and the audit log over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters.guarded import FROM_PAGE, PASSWORD, GuardedSite, guarded_site, sign_in
from clusters.small import SmallCluster
from fastapi.testclient import TestClient

from clusterscape.model.access import Outcome, Role, Scope, Way

VIEW = {"version": 1, "title": "By project"}


@pytest.fixture
def site(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[GuardedSite]:
    with guarded_site(small_cluster, tmp_path, modes=("local",)) as site:
        site.add_account("ada", Role.OPERATOR)
        site.add_account("root", Role.ADMIN)
        yield site


@pytest.fixture
def admin(site: GuardedSite) -> TestClient:
    client = site.client()
    sign_in(client, "root")
    client.headers.update(FROM_PAGE)
    return client


@pytest.fixture
def ada(site: GuardedSite) -> TestClient:
    client = site.client()
    sign_in(client, "ada")
    client.headers.update(FROM_PAGE)
    return client


def as_bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def make(client: TestClient, *scopes: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/tokens", json={"title": "nightly", "scopes": list(scopes), **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_token_opens_what_its_scopes_say_when_it_is_sent(site: GuardedSite, ada: TestClient) -> None:
    script = site.client()
    reads, sends, writes = (make(ada, scope)["secret"] for scope in ("read", "runs", "write"))

    def answers(secret: str) -> list[int]:
        headers = as_bearer(secret)
        return [
            script.get("/api/v1/cluster", headers=headers).status_code,
            script.post("/api/v1/rules/read", json={"text": "util < 5%"}, headers=headers).status_code,
            script.put("/api/v1/views/mine", json=VIEW, headers=headers).status_code,
            script.get("/api/v1/tokens", headers=headers).status_code,
        ]

    assert answers(reads) == [200, 200, 403, 403]
    assert answers(sends) == [403, 403, 403, 403]
    assert answers(writes) == [403, 403, 200, 403]


def test_secret_is_shown_once_and_never_stored_when_a_token_is_created(site: GuardedSite, ada: TestClient) -> None:
    new_token = make(ada, "read", days=30)
    (listed,) = ada.get("/api/v1/tokens").json()
    assert listed == new_token["token"]
    assert new_token["secret"].startswith(listed["start"])
    assert new_token["secret"] not in ada.get("/api/v1/tokens").text
    for path in (site.static.parent / "access").iterdir():
        assert new_token["secret"].encode() not in path.read_bytes()


def test_token_ends_when_it_is_old_revoked_or_its_owner_is_gone(site: GuardedSite, admin: TestClient) -> None:
    account = site.identity.store.account(Way.LOCAL, "ada")
    assert account is not None
    script = site.client()

    def opens(secret: str) -> bool:
        return script.get("/api/v1/cluster", headers=as_bearer(secret)).status_code == 200

    short, revoked, orphan = (site.make_token(account, Scope.READ, days=days) for days in (0.5, 30, 30))
    assert all(opens(secret) for secret in (short, revoked, orphan))
    site.pass_time(11)
    assert opens(short)
    site.pass_time(2)
    sign_in(admin, "root")
    assert not opens(short)
    (key,) = [
        token["key"]
        for token in admin.get("/api/v1/tokens?everybody=true").json()
        if revoked.startswith(token["start"])
    ]
    assert admin.delete(f"/api/v1/tokens/{key}").status_code == 204
    assert admin.delete(f"/api/v1/tokens/{key}").status_code == 404
    assert not opens(revoked)
    assert opens(orphan)
    assert admin.delete("/api/v1/accounts/local/ada").status_code == 204
    assert not opens(orphan)


def test_token_loses_rights_when_its_owner_loses_a_role(site: GuardedSite, admin: TestClient) -> None:
    account = site.identity.store.account(Way.LOCAL, "root")
    assert account is not None
    script = site.client()
    plain, whole = site.make_token(account, Scope.READ), site.make_token(account, Scope.READ, Scope.ADMIN)
    assert script.get("/api/v1/accounts", headers=as_bearer(plain)).status_code == 403
    assert script.get("/api/v1/accounts", headers=as_bearer(whole)).status_code == 200
    site.add_account("eve", Role.ADMIN)
    eve = site.client()
    sign_in(eve, "eve")
    assert eve.put("/api/v1/accounts/local/root", json={"role": "viewer"}, headers=FROM_PAGE).status_code == 200
    assert script.get("/api/v1/accounts", headers=as_bearer(whole)).status_code == 403
    assert admin.get("/api/v1/accounts").status_code == 403, "sessions follow at once, too"


def test_tokens_of_others_are_inaccessible_when_the_user_is_no_administrator(
    site: GuardedSite, ada: TestClient
) -> None:
    account = site.identity.store.account(Way.LOCAL, "root")
    assert account is not None
    site.make_token(account, Scope.ADMIN)
    (token,) = site.identity.store.tokens(Way.LOCAL, "root")
    assert ada.get("/api/v1/tokens").json() == []
    assert ada.get("/api/v1/tokens?everybody=true").status_code == 403
    assert ada.delete(f"/api/v1/tokens/{token.key}").status_code == 404
    stolen = {"title": "x", "scopes": ["read"], "owner": {"way": "local", "login": "root"}}
    assert ada.post("/api/v1/tokens", json=stolen).status_code == 403
    assert ada.post("/api/v1/tokens", json={"title": "x", "scopes": ["admin"]}).status_code == 422
    assert ada.post("/api/v1/tokens", json={"title": "x", "scopes": ["read"], "days": 400}).status_code == 422


def test_accounts_are_managed_when_an_administrator_requests_it(
    site: GuardedSite, admin: TestClient, ada: TestClient
) -> None:
    new = {"login": "lin", "password": "a long enough one", "role": "lead", "projects": ["vision"], "title": "Lin"}
    assert ada.post("/api/v1/accounts", json=new).status_code == 403
    assert admin.post("/api/v1/accounts", json=new).status_code == 201
    assert admin.post("/api/v1/accounts", json=new).status_code == 422
    assert admin.post("/api/v1/accounts", json={**new, "login": "a b"}).status_code == 422
    assert admin.post("/api/v1/accounts", json={**new, "login": "joe", "password": "joe's secret"}).status_code == 422
    lin = site.client()
    sign_in(lin, "lin", "a long enough one")
    account = lin.get("/api/v1/session").json()["who"]
    assert (account["role"], account["projects"], account["title"]) == ("lead", ["vision"], "Lin")
    change = {"role": "viewer", "projects": []}
    assert admin.put("/api/v1/accounts/local/lin", json=change).json()["role"] == "viewer"
    assert lin.get("/api/v1/session").json()["who"]["role"] == "viewer"
    assert [account["login"] for account in admin.get("/api/v1/accounts").json()] == ["ada", "lin", "root"]
    assert admin.delete("/api/v1/accounts/local/root").status_code == 422
    assert admin.put("/api/v1/accounts/local/root", json={"role": "viewer"}).status_code == 422
    assert admin.put("/api/v1/accounts/oidc/lin", json={"role": "viewer"}).status_code == 404


def test_changes_exports_and_refusals_are_logged_when_they_happen(
    site: GuardedSite, admin: TestClient, ada: TestClient
) -> None:
    new_token = make(ada, "read")
    ada.put("/api/v1/views/mine", json=VIEW)
    ada.get("/api/v1/units.parquet")
    ada.post("/api/v1/rules/read", json={"text": "util < 5%"})
    ada.get("/api/v1/accounts")
    script = site.client(address="203.0.113.5")
    script.put("/api/v1/views/mine", json=VIEW, headers=as_bearer(new_token["secret"]))
    script.get("/api/v1/cluster", headers=as_bearer("cst_wrong"))
    page = admin.get("/api/v1/audit").json()
    logged = [(entry["actor"], entry["action"], entry["outcome"]) for entry in page["entries"]][::-1]
    assert logged == [
        ("root", "sign_in", "done"),
        ("ada", "sign_in", "done"),
        ("ada", "token.create", "done"),
        ("ada", "view.save", "done"),
        ("ada", "export.units", "done"),
        ("ada", "access", "refused"),
        ("ada", "access", "refused"),
        (None, "token", "refused"),
    ]
    refused = page["entries"][1]
    assert refused["way"] == f"token:{new_token['token']['key']}"
    assert (refused["address"], refused["target"]) == ("203.0.113.5", "PUT /api/v1/views/mine")
    assert new_token["secret"] not in admin.get("/api/v1/audit").text
    assert PASSWORD not in admin.get("/api/v1/audit").text


def test_audit_log_is_read_page_by_page_when_it_is_long(site: GuardedSite, admin: TestClient) -> None:
    for number in range(5):
        site.identity.audit.write("rule.save", actor="ada" if number % 2 else "eve", target=str(number))
    first = admin.get("/api/v1/audit?limit=2&action=rule").json()
    second = admin.get(f"/api/v1/audit?limit=2&action=rule&before={first['next']}").json()
    third = admin.get(f"/api/v1/audit?limit=2&action=rule&before={second['next']}").json()
    assert [entry["target"] for page in (first, second, third) for entry in page["entries"]] == [
        "4",
        "3",
        "2",
        "1",
        "0",
    ]
    assert third["next"] is None
    assert len(admin.get("/api/v1/audit?actor=eve").json()["entries"]) == 3


def test_log_of_refusals_stays_short_when_somebody_floods_it(site: GuardedSite) -> None:
    script = site.client()
    for _ in range(60):
        script.get("/api/v1/cluster", headers=as_bearer("cst_guess"))
    refused = [entry for entry in site.audited() if entry.outcome is Outcome.REFUSED]
    assert len(refused) == 50
