"""Markers of types decide how their values are redacted; texts without a marker are refused."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import polars as pl
import pytest
from clusters.opened import open_queries
from clusters.small import SmallCluster
from pydantic import BaseModel

from clusterscape.model import NodeId, WorkloadId
from clusterscape.model.access import Role, Viewer
from clusterscape.model.identity_fields import (
    ExperimentName,
    FreeText,
    OperatorOnly,
    OperatorText,
    OwnerText,
    PersonName,
    ProjectName,
    PublicText,
    Reveals,
    ScopedText,
    UnitRef,
    UserName,
    WorkloadRef,
    WorkloadTags,
    access_checked,
)
from clusterscape.query import Queries
from clusterscape.query.redaction import ScopeRedactor, UnmarkedTextError
from clusterscape.query.redaction.plans import compile_plan

PODS = "kubernetes:ada-team.train.1f3c9a2b"


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Job:
    workload: WorkloadRef
    user: UserName | None
    project: ProjectName | None
    experiment: ExperimentName | None
    name: OwnerText | None
    note: OwnerText
    reason: FreeText | None
    tags: WorkloadTags
    partition: PublicText
    units: list[UnitRef] = field(default_factory=list)


@dataclass(frozen=True)
class Plain:
    node: NodeId
    color: Color
    kind: Literal["a", "b"]
    sizes: dict[Color, list[float | None]]
    span: tuple[float, float]


class Pair(NamedTuple):
    text: FreeText
    number: int


class Model(BaseModel):
    problem: OperatorOnly | None
    reason: OperatorText
    is_redacted: Annotated[bool, Reveals.REDACTION_FLAG] = False


@dataclass(frozen=True)
class Note:
    """``workload`` None: about all workloads."""

    workload: WorkloadRef | None
    author: UserName
    text: OwnerText


@dataclass(frozen=True)
class Tree:
    name: FreeText
    parts: list["Tree"]
    parent: Optional["Tree"] = None


@pytest.fixture
def site(small_cluster: SmallCluster) -> Queries:
    return open_queries(replace(small_cluster.queries.context, is_private=True))


def redactor_of(
    site: Queries, login: str | None, *, role: Role = Role.RESEARCHER, project: str = "none"
) -> ScopeRedactor:
    viewer = Viewer(login=login, role=role, projects=frozenset({project}))
    redactor = site.scoped_to(viewer).redactor
    assert redactor is not None
    return redactor


@pytest.fixture
def of_ada(site: Queries) -> ScopeRedactor:
    return redactor_of(site, "ada")


@pytest.fixture
def of_bob(site: Queries) -> ScopeRedactor:
    return redactor_of(site, "bob")


JOB = Job(
    workload=PODS,
    user="ada",
    project="nlp",
    experiment="secret",
    name="train-ada",
    note="mine",
    reason="Ada and bob",
    tags={"owner": "ada", "tp": "2"},
    partition="main",
    units=[f"{PODS}#3", "n1/0"],
)


def test_names_are_replaced_when_the_owner_is_not_covered(of_bob: ScopeRedactor) -> None:
    redacted = of_bob.redact(JOB)
    assert redacted.user == of_bob.names.of("user", "ada")
    assert redacted.project == of_bob.names.of("project", "nlp")
    assert redacted.experiment == of_bob.names.of("experiment", "secret")
    assert (redacted.name, redacted.note, redacted.tags, redacted.partition) == (None, "hidden", {"tp": "2"}, "main")
    assert redacted.reason == f"{redacted.user} and bob"
    assert redacted.workload.startswith("kubernetes:~")
    assert redacted.units == [f"{redacted.workload}#3", "n1/0"]


def test_nothing_changes_when_an_answer_is_redacted_twice(of_bob: ScopeRedactor) -> None:
    once = of_bob.redact(JOB)
    assert of_bob.redact(once) == once


def test_names_are_kept_when_they_belong_to_the_viewer(of_ada: ScopeRedactor, site: Queries) -> None:
    redacted = of_ada.redact(JOB)
    assert replace(redacted, workload=JOB.workload, units=JOB.units, reason=JOB.reason) == JOB
    assert of_ada.redact(Pair("ada and bob", 1)).text == f"ada and {of_ada.names.of('user', 'bob')}"
    lead = redactor_of(site, "eve", role=Role.LEAD, project="nlp").redact(JOB)
    assert (lead.user, lead.name, lead.tags) == (JOB.user, JOB.name, JOB.tags)


def test_names_are_hidden_when_the_owner_is_unknown(of_ada: ScopeRedactor) -> None:
    redacted = of_ada.redact(replace(JOB, user=None, project=None))
    assert (redacted.name, redacted.note, redacted.tags) == (None, "hidden", {"tp": "2"})


def test_owner_is_looked_up_when_only_the_workload_is_given(of_ada: ScopeRedactor, of_bob: ScopeRedactor) -> None:
    note = Note(workload="slurm:1", author="omar", text="by omar")
    assert of_ada.redact(note) == note
    assert of_bob.redact(note) == Note("slurm:1", of_bob.names.of("user", "omar"), "hidden")


def test_texts_are_scrubbed_when_no_workload_is_given(of_bob: ScopeRedactor) -> None:
    redacted = of_bob.redact(Note(workload=None, author="omar", text="asked by ada"))
    assert redacted.text == f"asked by {of_bob.names.of('user', 'ada')}"


def test_types_without_texts_are_passed_on_when_they_are_redacted(of_bob: ScopeRedactor) -> None:
    assert compile_plan(list[Plain]) is None
    plain = Plain(NodeId("n1"), Color.RED, "a", {Color.RED: [1.0, None]}, (0.0, 1.0))
    assert of_bob.redact(plain) is plain


def test_all_kinds_of_types_are_redacted_when_they_hold_texts(of_bob: ScopeRedactor) -> None:
    ada = of_bob.names.of("user", "ada")
    assert of_bob.redact(Pair("by ada", 3)) == Pair(f"by {ada}", 3)
    assert of_bob.redact(Model(problem="ada", reason="ada")) == Model(
        problem=None, reason="hidden; operators can see it", is_redacted=True
    )
    assert of_bob.redact({"ada": [Pair("ada", 1)]}, dict[UserName, list[Pair]]) == {ada: [Pair(ada, 1)]}
    assert of_bob.redact(("ada", "*"), tuple[PersonName, ...]) == (ada, "*")
    tree = Tree("ada", [Tree("bob", [])], parent=Tree("ada", []))
    assert of_bob.redact(tree) == Tree(ada, [Tree("bob", [])], parent=Tree(ada, []))
    assert of_bob.redact([Pair("ada", 1), 2.0, "ada"], list[Pair | float | UserName]) == [Pair(ada, 1), 2.0, ada]


def test_documents_are_redacted_when_they_are_marked(of_bob: ScopeRedactor) -> None:
    ada = of_bob.names.of("user", "ada")
    document = {"ada": ["ada", {"deep": "ada"}], "n": 1}
    free = of_bob.redact(document, Annotated[dict[str, Any], Reveals.FREE_TEXT])
    assert free == {ada: [ada, {"deep": ada}], "n": 1}
    assert of_bob.redact({"id": PODS}, Annotated[dict[str, Any], Reveals.SCOPED_TEXT])["id"] != PODS
    assert of_bob.redact({"a": "b"}, Annotated[dict[str, str], Reveals.OPERATOR_ONLY]) == {}


@pytest.mark.parametrize(
    "kind",
    [
        str,
        str | None,
        list[str],
        dict[str, int],
        dict[Color, str],
        dict[PublicText, Any],
        Any,
        object,
        bytes,
        tuple[str, int],
        tuple[UserName, PublicText],
        float | str,
        list[PublicText | str],
        Annotated[str, "a note"],
    ],
)
def test_type_is_refused_when_a_text_has_no_marker(kind: Any) -> None:
    Holder: Any = dataclass(type("Holder", (), {"__annotations__": {"plain": int, "value": kind}}))
    for wanted in (kind, Holder, list[Holder], Holder | None):
        with pytest.raises(UnmarkedTextError):
            compile_plan(wanted)


def test_unmarked_texts_pass_when_access_to_the_whole_was_checked(of_bob: ScopeRedactor) -> None:
    @access_checked("trace")
    @dataclass(frozen=True)
    class Content:
        name: str
        extra: dict[str, Any]
        workload: WorkloadId

    redacted = of_bob.redact(Content("of ada", {"a": "ada"}, WorkloadId(PODS)))
    assert (redacted.name, redacted.extra) == ("of ada", {"a": "ada"})
    assert redacted.workload != PODS

    @dataclass(frozen=True)
    class Holder:
        content: Content
        user: str

    with pytest.raises(UnmarkedTextError, match=r"Holder\.user"):
        compile_plan(Holder)


class Columns(TypedDict):
    user: UserName
    project: ProjectName
    name: OwnerText
    note: FreeText
    unit: UnitRef
    text: ScopedText


def test_tables_are_redacted_by_row_when_their_columns_are_marked(of_ada: ScopeRedactor) -> None:
    table = pl.DataFrame(
        {
            "user": ["ada", "bob", None],
            "project": ["nlp", "cv", None],
            "name": ["a", "b", "c"],
            "note": ["by ada", "by bob", None],
            "unit": ["n1/0", f"{PODS}#1", None],
            "value": [1.0, 2.0, 3.0],
        }
    ).with_columns(pl.col("user").cast(pl.Enum(["ada", "bob"])))
    redacted = of_ada.redact_table(table, Columns)
    alone = of_ada.redact_table(table.head(1), Columns)
    assert "bob" not in str(alone.schema)
    bob = of_ada.names.of("user", "bob")
    assert redacted["user"].to_list() == ["ada", bob, None]
    assert isinstance(redacted.schema["user"], pl.Enum)
    assert redacted["project"].to_list() == ["nlp", of_ada.names.of("project", "cv"), None]
    assert redacted["name"].to_list() == ["a", None, None]
    assert redacted["note"].to_list() == ["by ada", f"by {bob}", None]
    assert redacted["unit"][0] == "n1/0"
    assert redacted["unit"][1].startswith("kubernetes:~")
    assert redacted["value"].to_list() == [1.0, 2.0, 3.0]
    assert of_ada.redact_table(redacted, Columns).equals(redacted)


@pytest.mark.parametrize("values", [["ada"], [["ada"]], [{"a": "ada"}]])
def test_table_is_refused_when_a_column_of_texts_has_no_marker(of_ada: ScopeRedactor, values: list[Any]) -> None:
    with pytest.raises(UnmarkedTextError, match="submitted_by"):
        of_ada.redact_table(pl.DataFrame({"submitted_by": values}), Columns)


def test_names_are_replaced_in_texts_when_a_user_is_new(of_bob: ScopeRedactor) -> None:
    assert of_bob.redact(Pair("by zoe", 1)).text == "by zoe"
    stand_in = of_bob.names.of("user", "zoe")
    assert of_bob.redact(Pair("by zoe", 1)).text == f"by {stand_in}"


def test_value_is_redacted_or_refused_when_it_is_not_of_its_declared_type(of_bob: ScopeRedactor) -> None:
    ada = of_bob.names.of("user", "ada")
    assert list(of_bob.redact(("ada",), list[UserName] | None)) == [ada]
    assert of_bob.redact([1, 2.5, None, "ada"], list[float | UserName | None]) == [1, 2.5, None, ada]
    with pytest.raises(UnmarkedTextError):
        of_bob.redact(b"ada", float | UserName)
