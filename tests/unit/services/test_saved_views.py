"""Saved views and the start view."""

import pytest
from clusters.opened import open_services
from clusters.small import NOW, SmallCluster

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.services.saved_views import MAX_BYTES
from clusterscape.settings.limits import ItemLimits

BODY: dict[str, object] = {"version": 1, "title": "By project", "layers": [{"by": "project", "layout": "pack"}]}


def test_view_comes_back_as_it_was_when_saved(small_cluster: SmallCluster) -> None:
    views, keeper = small_cluster.queries.views, open_services(small_cluster.queries).views
    assert views.all().views == []
    keeper.save("by-project", BODY)
    keeper.save("a", {**BODY, "title": "مشروع 🦊"})
    keeper.save("by-project", {**BODY, "version": 2})
    saved = views.all()
    assert [(view.name, view.title) for view in saved.views] == [("a", "مشروع 🦊"), ("by-project", "By project")]
    assert saved.views[1].document == {**BODY, "version": 2}
    assert saved.views[1].written_at == NOW


def test_start_view_goes_with_its_view_when_that_is_removed(small_cluster: SmallCluster) -> None:
    views, keeper = small_cluster.queries.views, open_services(small_cluster.queries).views
    keeper.save("mine", BODY)
    keeper.start_with("mine")
    assert views.all().start_view == "mine"
    keeper.remove("mine")
    assert views.all().start_view is None
    keeper.start_with("builtin:hosts-by-partition")
    assert views.all().start_view == "builtin:hosts-by-partition"
    assert keeper.start_with(None) is None
    assert views.all().start_view is None
    for act in (keeper.remove, keeper.start_with):
        with pytest.raises(NotFoundError, match="mine"):
            act("mine")


@pytest.mark.parametrize("name", ["", "A", "-a", "a b", "a/b", "ä", "a" * 65, "builtin:x", "a\n"])
def test_name_is_refused_when_it_is_not_plain(small_cluster: SmallCluster, name: str) -> None:
    with pytest.raises(QueryError, match="not a valid name"):
        open_services(small_cluster.queries).views.save(name, BODY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": None}, "version"),
        ({"version": True}, "version"),
        ({"version": 0}, "version"),
        ({"title": " "}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"more": "x" * MAX_BYTES}, "bytes"),
        ({"more": 2**70}, "JSON"),
        ({"more": "\ud800"}, "JSON"),
    ],
)
def test_document_is_refused_when_its_frame_is_wrong(
    small_cluster: SmallCluster, change: dict[str, object], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        open_services(small_cluster.queries).views.save("v", {**BODY, **change})
    assert small_cluster.queries.views.all().views == []


def test_only_known_views_are_written_when_there_are_too_many(small_cluster: SmallCluster) -> None:
    keeper = open_services(small_cluster.queries, items=ItemLimits(views=2)).views
    keeper.save("a", BODY)
    keeper.save("b", BODY)
    keeper.save("b", BODY)
    with pytest.raises(QueryError, match="limit of 2"):
        keeper.save("one-more", BODY)
