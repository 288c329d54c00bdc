"""Viewer scopes: names are replaced, the picture stays complete, queries accept the names that the viewer sees."""

from dataclasses import replace
from itertools import product

import polars as pl
import pytest
from clusters.opened import open_queries, open_services, records_of
from clusters.small import NOW, SmallCluster

from clusterscape.errors import ForbiddenError, StoreError
from clusterscape.model import UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.access import Role, Viewer
from clusterscape.query import Queries
from clusterscape.query.cache import CachePart, VersionedCache
from clusterscape.query.picture import SnapshotRow
from clusterscape.query.redaction import scope_of
from clusterscape.query.redaction.pseudonyms import PROJECT, USER, Pseudonyms, WorkloadCodes
from clusterscape.query.redaction.redactor import ScopeRedactor
from clusterscape.services.site_secret import ensure_secret

VIEWER = Viewer(login=None, role=Role.VIEWER)
ADA = Viewer(login="ada", role=Role.RESEARCHER)
BOB = Viewer(login="bob", role=Role.RESEARCHER)
LEAD = Viewer(login="eve", role=Role.LEAD, projects=frozenset({"nlp"}))
OPERATOR = Viewer(login="omar", role=Role.OPERATOR)


@pytest.fixture
def site(small_cluster: SmallCluster) -> Queries:
    return open_queries(replace(small_cluster.queries.context, is_private=True))


def redactor_of(site: Queries, viewer: Viewer) -> ScopeRedactor:
    redactor = site.scoped_to(viewer).redactor
    assert redactor is not None
    return redactor


def picture_of(site: Queries, viewer: Viewer) -> pl.DataFrame:
    return redactor_of(site, viewer).redact_table(site.scoped_to(viewer).cluster.picture()[1], SnapshotRow)


def test_everything_is_the_same_object_when_nothing_is_hidden(small_cluster: SmallCluster, site: Queries) -> None:
    whole = small_cluster.queries
    assert whole.scoped_to(VIEWER) is whole
    assert site.scoped_to(OPERATOR) is site


def test_viewers_share_queries_when_they_have_the_same_scope(site: Queries) -> None:
    other = Viewer(login="ada", role=Role.RESEARCHER, title="Ada again", projects=frozenset({"ignored"}))
    assert site.scoped_to(ADA) is site.scoped_to(other)
    assert site.scoped_to(VIEWER) is site.scoped_to(replace(VIEWER, login="vera"))
    assert site.scoped_to(ADA) is not site.scoped_to(BOB)


def test_scope_covers_what_the_viewer_knows_when_all_roles_are_tried() -> None:
    users, projects = ("ada", "bob", None), ("nlp", "other", None)
    for role, login, user, project in product(Role, ("ada", None), users, projects):
        viewer = Viewer(login=login, role=role, projects=frozenset({"nlp"}))
        scope = scope_of(viewer)
        assert viewer.may_see(user, project) == (scope is None or scope.covers(user, project))


def test_picture_is_complete_when_names_are_hidden(site: Queries) -> None:
    _, whole = site.cluster.picture()
    scoped_picture = picture_of(site, BOB)
    redacted_columns = {"user", "project", "workload_name", "experiment", "qos"}
    assert scoped_picture.drop(redacted_columns).equals(whole.drop(redacted_columns), null_equal=True)
    assert scoped_picture["user"].n_unique() == whole["user"].n_unique()
    assert "ada" not in set(scoped_picture["user"].drop_nulls())
    own = picture_of(site, ADA)
    assert set(own["user"].drop_nulls()) == {"ada"}
    assert scoped_picture["workload_name"].drop_nulls().is_empty()
    assert redactor_of(site, BOB).redact(site.cluster.summary()).hides_names
    assert not site.cluster.summary().hides_names


def test_numbers_are_shared_when_several_viewers_read_them(site: Queries) -> None:
    of_ada, of_viewer = site.scoped_to(ADA), site.scoped_to(VIEWER)
    assert of_ada.timeline is of_viewer.timeline is site.timeline
    assert of_ada.cluster.tick(["gpu_util_ratio"]).table.equals(site.cluster.tick(["gpu_util_ratio"]).table)


@pytest.mark.parametrize("at", [None, NOW])
def test_foreign_names_find_nothing_and_pseudonyms_do_when_workloads_are_asked_for(
    site: Queries, at: UnixMs | None
) -> None:
    scoped = site.scoped_to(BOB)
    listed = scoped.workloads.page(at_ms=at).workloads
    stand_in = next(row.user for row in listed if row.workload == "slurm:1")
    assert stand_in is not None
    assert stand_in.startswith("user ")
    assert scoped.workloads.page(user="ada", at_ms=at).total == 0
    assert scoped.workloads.page(project="nlp", at_ms=at).total == 0
    assert scoped.workloads.page(text="train", at_ms=at).total == 0
    assert {row.workload for row in scoped.workloads.page(user=stand_in, at_ms=at).workloads} == {
        "slurm:1",
        "slurm:3",
    }
    assert {row.workload for row in scoped.workloads.page(text=stand_in, at_ms=at).workloads} == {
        "slurm:1",
        "slurm:3",
    }
    assert [row.workload for row in scoped.workloads.page(user="bob", at_ms=at).workloads] == ["slurm:2"]
    assert scoped.workloads.page(text="slurm", at_ms=at).total == len(listed)


def test_project_is_partly_visible_when_only_some_workloads_belong_to_the_viewer(site: Queries) -> None:
    records_of(site.context).write_workloads(
        [Workload(id=WorkloadId("slurm:9"), state=WorkloadState.RUNNING, user="bob", project="nlp", gpus_requested=1)],
        at_ms=NOW,
    )
    site.context.changes.bump_inventory()
    of_bob, of_lead = site.scoped_to(BOB), site.scoped_to(LEAD)
    assert [row.workload for row in of_bob.workloads.page(project="nlp").workloads] == ["slurm:9"]
    stand_in = of_bob.workloads.detail("slurm:1").workload.project
    assert {row.workload for row in of_bob.workloads.page(project=stand_in).workloads} == {"slurm:1", "slurm:3"}
    assert of_bob.workloads.page(user="bob", project=stand_in).total == 0
    assert {row.workload for row in of_lead.workloads.page(project="nlp").workloads} == {
        "slurm:1",
        "slurm:3",
        "slurm:9",
    }
    assert [row.workload for row in of_lead.workloads.page(user="bob").workloads] == ["slurm:9"]


def test_search_matches_redacted_names(site: Queries) -> None:
    assert not site.scoped_to(BOB).search.search("ada").hits
    assert {hit.kind for hit in site.scoped_to(ADA).search.search("ada").hits} == {"user", "workload"}
    stand_in = site.scoped_to(BOB).workloads.detail("slurm:1").workload.user
    assert stand_in is not None
    assert any(hit.key == stand_in for hit in site.scoped_to(BOB).search.search(stand_in).hits)


def test_pseudonyms_stay_when_the_server_starts_again(site: Queries) -> None:
    before = site.scoped_to(VIEWER).workloads.detail("slurm:1").workload.user
    again = open_queries(site.context).scoped_to(VIEWER)
    assert again.workloads.detail("slurm:1").workload.user == before
    # This name was not redacted before, so it comes from the workload history.
    assert open_queries(site.context).scoped_to(VIEWER).workloads.page(user=before).total == 2


def test_error_is_raised_when_the_site_has_no_secret(small_cluster: SmallCluster) -> None:
    with pytest.raises(StoreError, match="no pseudonym secret"):
        Pseudonyms(small_cluster.records, lambda: NOW)
    names = []
    for _ in range(2):
        ensure_secret(small_cluster.records, lambda: NOW)
        names.append(Pseudonyms(small_cluster.records, lambda: NOW).of(USER, "ada"))
    assert names[0] == names[1]


def test_names_are_scrubbed_from_texts_of_users(small_cluster: SmallCluster) -> None:
    ensure_secret(small_cluster.records, lambda: NOW)
    names = Pseudonyms(small_cluster.records, lambda: NOW)
    ada, nlp = names.of(USER, "ada"), names.of(PROJECT, "nlp")
    assert names.scrub("Ada's job (nlp) broke /home/ada/x.py") == f"{ada}'s job ({nlp}) broke /home/{ada}/x.py"
    assert names.scrub("adamant, ada-run.sh", frozenset()) == f"adamant, {ada}-run.sh"
    assert names.scrub("ada and bob", frozenset({"ada"})) == f"ada and {names.of(USER, 'bob')}"


def test_new_kinds_of_documents_are_hidden_by_default(site: Queries) -> None:
    records_of(site.context).write_document("new-kind", "x", {"user": "ada"}, at_ms=NOW)
    records = site.scoped_to(ADA).context.records
    assert records.document("new-kind", "x") is None
    assert records.documents("new-kind") == []
    with pytest.raises(ForbiddenError):
        open_services(site).scoped_to(site.scoped_to(ADA)).context.write_document("new-kind", "y", {}, at_ms=NOW)
    assert records.document("site", "pseudonym-secret") is None


def test_history_is_complete_when_names_are_hidden(site: Queries) -> None:
    whole = site.context.records.workload_history().sort("id")
    history = site.scoped_to(ADA).context.records.workload_history().sort("id")
    assert history.drop("user", "project").equals(whole.drop("user", "project"))
    users = dict(zip(history["id"], history["user"], strict=True))
    assert users["slurm:1"] == "ada"
    assert users["slurm:2"].startswith("user ")


def test_codes_are_the_same_when_another_replica_made_them(small_cluster: SmallCluster) -> None:
    name = "kubernetes:team-a.train.1f3c9a2b"
    small_cluster.records.write_workloads(
        [Workload(id=WorkloadId(name), state=WorkloadState.RUNNING, gpus_requested=1)], at_ms=NOW
    )

    ensure_secret(small_cluster.records, lambda: NOW)

    def replica() -> WorkloadCodes:
        names = Pseudonyms(small_cluster.records, lambda: NOW)
        return WorkloadCodes(names, small_cluster.records, lambda: NOW)

    code = replica().hide(name)
    body = replica().hide_in(f'{{"text": "{name} leaves.", "unit": "{name}#3"}}')
    assert body == f'{{"text": "{code} leaves.", "unit": "{code}#3"}}'
    assert replica().reveal_in(body) == f'{{"text": "{name} leaves.", "unit": "{name}#3"}}'
    assert replica().reveal_in(f"a={code.replace(':', '%3A')}", is_encoded=True) == f"a={name.replace(':', '%3A')}"
    assert replica().reveal_in("kubernetes:~aaaaaaa") == "kubernetes:~aaaaaaa"


def test_parts_keep_no_more_than_the_whole_when_many_share_a_cache() -> None:
    shared = VersionedCache(2)
    created: list[str] = []

    def make() -> int:
        created.append(owner)
        return len(created)

    for owner in ("a", "b", "c", "c", "a"):
        CachePart(shared, owner).get("key", 1, make)
    assert created == ["a", "b", "c", "a"]
