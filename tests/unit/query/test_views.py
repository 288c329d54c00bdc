"""Saved views and the start view."""

from dataclasses import replace

import pytest
from clusters.small import NOW, SmallCluster

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.query import Queries
from clusterscape.query.views import MAX_BYTES
from clusterscape.settings.limits import ItemLimits

BODY: dict[str, object] = {"version": 1, "title": "By project", "layers": [{"by": "project", "layout": "pack"}]}


def test_view_comes_back_as_it_was_when_saved(small_cluster: SmallCluster) -> None:
    views = small_cluster.queries.views
    assert views.all().views == []
    views.save("by-project", BODY)
    views.save("a", {**BODY, "title": "مشروع 🦊"})
    views.save("by-project", {**BODY, "version": 2})
    found = views.all()
    assert [(view.name, view.title) for view in found.views] == [("a", "مشروع 🦊"), ("by-project", "By project")]
    assert found.views[1].document == {**BODY, "version": 2}
    assert found.views[1].written_at == NOW


def test_start_view_goes_with_its_view_when_that_is_removed(small_cluster: SmallCluster) -> None:
    views = small_cluster.queries.views
    views.save("mine", BODY)
    views.start_with("mine")
    assert views.all().start_view == "mine"
    views.remove("mine")
    assert views.all().start_view is None
    views.start_with("builtin:hosts-by-partition")
    assert views.all().start_view == "builtin:hosts-by-partition"
    assert views.start_with(None) is None
    assert views.all().start_view is None
    for act in (views.remove, views.start_with):
        with pytest.raises(NotFoundError, match="mine"):
            act("mine")


@pytest.mark.parametrize("name", ["", "A", "-a", "a b", "a/b", "ä", "a" * 65, "builtin:x", "a\n"])
def test_name_is_refused_when_it_is_not_plain(small_cluster: SmallCluster, name: str) -> None:
    with pytest.raises(QueryError, match="cannot name a view"):
        small_cluster.queries.views.save(name, BODY)


@pytest.mark.parametrize(
    ("change", "said"),
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
    small_cluster: SmallCluster, change: dict[str, object], said: str
) -> None:
    with pytest.raises(QueryError, match=said):
        small_cluster.queries.views.save("v", {**BODY, **change})
    assert small_cluster.queries.views.all().views == []


def test_only_known_views_are_written_when_there_are_too_many(small_cluster: SmallCluster) -> None:
    views = Queries(replace(small_cluster.queries.context, items=ItemLimits(views=2))).views
    views.save("a", BODY)
    views.save("b", BODY)
    views.save("b", BODY)
    with pytest.raises(QueryError, match="already"):
        views.save("one-more", BODY)
