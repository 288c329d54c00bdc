"""Stored items are limited per user and per site; the error names the setting."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters.guarded import FROM_PAGE, GuardedSite, guarded_site, sign_in
from clusters.opened import open_services
from clusters.small import NOW, SmallCluster

from clusterscape.errors import TooLargeError
from clusterscape.model.access import Role, Scope, Viewer, Way
from clusterscape.settings.limits import ItemLimits

ADA, BOB = Viewer(login="ada", role=Role.RESEARCHER), Viewer(login="bob", role=Role.RESEARCHER)
OPERATOR = Viewer(login="op", role=Role.OPERATOR)
VIEW: dict[str, object] = {"version": 1, "title": "By project"}
HOUR_MS = 3_600_000


@pytest.mark.parametrize("kind", ["views", "insights"])
def test_views_of_one_user_are_limited_when_there_are_too_many(small_cluster: SmallCluster, kind: str) -> None:
    views = getattr(open_services(small_cluster.queries, items=ItemLimits(views=6, views_per_user=2)), kind)
    for name in ("a", "b"):
        views.save(name, VIEW, by=ADA)
    with pytest.raises(TooLargeError, match="your limit of 2") as raised:
        views.save("c", VIEW, by=ADA)
    assert raised.value.setting == "limits.items.views_per_user"
    views.save("a", VIEW, by=ADA)
    views.save("d", VIEW, by=BOB)
    views.remove("a", by=ADA)
    views.save("c", VIEW, by=ADA)
    for name in ("e", "f", "g"):
        views.save(name, VIEW, by=OPERATOR)
    with pytest.raises(TooLargeError, match="the limit of 6") as full:
        views.save("h", VIEW, by=BOB)
    assert full.value.setting == "limits.items.views"


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        (ItemLimits(comments_per_user=3), "comments_per_user"),
        (ItemLimits(comments_per_workload=3), "comments_per_workload"),
        (ItemLimits(comments=3), "comments"),
    ],
)
def test_comments_are_limited_when_there_are_too_many(
    small_cluster: SmallCluster, limits: ItemLimits, setting: str
) -> None:
    notes = open_services(small_cluster.queries, items=limits).notes
    workload = str(small_cluster.queries.workloads.page(limit=1).workloads[0].workload)
    for _ in range(3):
        kept = notes.comment(workload=workload, author="ada", text="hm")
    with pytest.raises(TooLargeError) as raised:
        notes.comment(workload=workload, author="ada", text="hm")
    assert raised.value.setting == f"limits.items.{setting}"
    notes.remove_comment(kept.key, by=ADA)
    notes.comment(workload=workload, author="ada", text="hm")


def test_mutes_are_limited_unless_expired_when_there_are_too_many(small_cluster: SmallCluster) -> None:
    notes = open_services(small_cluster.queries, items=ItemLimits(mutes=3)).notes
    rule = small_cluster.queries.rules.all().rules[0].key
    for _ in range(3):
        notes.mute(rule=rule, workload=None, reason="x", author="op", hours=1)
    with pytest.raises(TooLargeError, match="3 mutes"):
        notes.mute(rule=rule, workload=None, reason="x", author="op", hours=1)
    small_cluster.now = type(NOW)(NOW + 2 * HOUR_MS)
    notes.mute(rule=rule, workload=None, reason="x", author="op", hours=1)
    assert len(small_cluster.records.documents("mute")) == 1


@pytest.fixture
def site(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[GuardedSite]:
    limits = ItemLimits(tokens_per_user=3, new_tokens_per_day=5, sessions_per_user=4)
    with guarded_site(small_cluster, tmp_path, limits=limits, modes=("local",)) as site:
        site.add_account("ada", Role.RESEARCHER)
        yield site


def test_tokens_of_one_user_are_limited_when_there_are_too_many(site: GuardedSite) -> None:
    client = site.client()
    sign_in(client, "ada")
    client.headers.update(FROM_PAGE)
    new = {"title": "x", "scopes": ["read"], "days": 1}
    keys = [client.post("/api/v1/tokens", json=new).json()["token"]["key"] for _ in range(3)]
    refused = client.post("/api/v1/tokens", json=new)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    assert "limits.items.tokens_per_user" in refused.json()["error"]["hint"]
    created = 3
    while created < 5:
        assert client.delete(f"/api/v1/tokens/{keys.pop()}").status_code == 204
        keys.append(client.post("/api/v1/tokens", json=new).json()["token"]["key"])
        created += 1
    client.delete(f"/api/v1/tokens/{keys.pop()}")
    assert "new_tokens_per_day" in client.post("/api/v1/tokens", json=new).json()["error"]["hint"]
    site.pass_time(25)
    account = site.identity.store.account(Way.LOCAL, "ada")
    assert account is not None
    assert site.make_token(account, Scope.READ)


def test_the_browser_unused_for_longest_is_signed_out_when_there_are_many(site: GuardedSite) -> None:
    clients = []
    for _ in range(6):
        site.pass_time(0.1)
        clients.append(site.client())
        sign_in(clients[-1], "ada")
    statuses = [client.get("/api/v1/cluster").status_code for client in clients]
    assert statuses == [401, 401, 200, 200, 200, 200]
    assert len(site.identity.store.sessions(Way.LOCAL, "ada")) == 4
