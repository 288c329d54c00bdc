"""What users write and keep has a number, of one user and of the site: beyond it the answer names the setting."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusters.guarded import FROM_PAGE, GuardedSite, guarded_site, sign_in
from clusters.small import NOW, SmallCluster

from clusterscape.errors import TooLargeError
from clusterscape.model.access import Scope, Way
from clusterscape.model.viewers import Role, Viewer
from clusterscape.query import Queries
from clusterscape.settings.limits import ItemLimits

ADA, BOB = Viewer(login="ada", role=Role.RESEARCHER), Viewer(login="bob", role=Role.RESEARCHER)
OPERATOR = Viewer(login="op", role=Role.OPERATOR)
VIEW: dict[str, object] = {"version": 1, "title": "By project"}
HOUR_MS = 3_600_000


def queries_with(cluster: SmallCluster, limits: ItemLimits) -> Queries:
    return Queries(replace(cluster.queries.context, items=limits))


@pytest.mark.parametrize("kind", ["views", "insights"])
def test_one_user_saves_a_number_of_views_and_others_go_on(small_cluster: SmallCluster, kind: str) -> None:
    views = getattr(queries_with(small_cluster, ItemLimits(views=6, views_per_user=2)), kind)
    for name in ("a", "b"):
        views.save(name, VIEW, by=ADA)
    with pytest.raises(TooLargeError, match="you have 2") as raised:
        views.save("c", VIEW, by=ADA)
    assert raised.value.setting == "limits.items.views_per_user"
    views.save("a", VIEW, by=ADA)
    views.save("d", VIEW, by=BOB)
    views.remove("a", by=ADA)
    views.save("c", VIEW, by=ADA)
    for name in ("e", "f", "g"):
        views.save(name, VIEW, by=OPERATOR)
    with pytest.raises(TooLargeError, match="there are 6") as full:
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
def test_comments_have_a_number(small_cluster: SmallCluster, limits: ItemLimits, setting: str) -> None:
    notes = queries_with(small_cluster, limits).rule_notes
    workload = str(small_cluster.queries.workloads.page(limit=1).workloads[0].workload)
    for _ in range(3):
        kept = notes.comment(workload=workload, author="ada", text="hm")
    with pytest.raises(TooLargeError) as raised:
        notes.comment(workload=workload, author="ada", text="hm")
    assert raised.value.setting == f"limits.items.{setting}"
    notes.remove_comment(kept.key, by=ADA)
    notes.comment(workload=workload, author="ada", text="hm")


def test_mutes_have_a_number_and_expired_ones_make_room(small_cluster: SmallCluster) -> None:
    queries = queries_with(small_cluster, ItemLimits(mutes=3))
    rule = queries.rules.all().rules[0].key
    for _ in range(3):
        queries.rule_notes.mute(rule=rule, workload=None, reason="x", author="op", hours=1)
    with pytest.raises(TooLargeError, match="3 mutes"):
        queries.rule_notes.mute(rule=rule, workload=None, reason="x", author="op", hours=1)
    small_cluster.now = type(NOW)(NOW + 2 * HOUR_MS)
    queries.rule_notes.mute(rule=rule, workload=None, reason="x", author="op", hours=1)
    assert len(small_cluster.records.documents("mute")) == 1


@pytest.fixture
def site(small_cluster: SmallCluster, tmp_path: Path) -> Iterator[GuardedSite]:
    limits = ItemLimits(tokens_per_user=3, new_tokens_per_day=5, sessions_per_user=4)
    with guarded_site(small_cluster, tmp_path, limits=limits, modes=("local",)) as site:
        site.add_account("ada", Role.RESEARCHER)
        yield site


def test_tokens_of_one_user_have_a_number(site: GuardedSite) -> None:
    client = site.client()
    sign_in(client, "ada")
    client.headers.update(FROM_PAGE)
    new = {"title": "x", "scopes": ["read"], "days": 1}
    keys = [client.post("/api/v1/tokens", json=new).json()["token"]["key"] for _ in range(3)]
    refused = client.post("/api/v1/tokens", json=new)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    assert "limits.items.tokens_per_user" in refused.json()["error"]["hint"]
    made = 3
    while made < 5:
        assert client.delete(f"/api/v1/tokens/{keys.pop()}").status_code == 204
        keys.append(client.post("/api/v1/tokens", json=new).json()["token"]["key"])
        made += 1
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
