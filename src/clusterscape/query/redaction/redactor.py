"""Redacts answers, records and tables for one viewer scope (the names that a viewer may see), by the markers of their types.
The only place that hides names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from clusterscape.model import WorkloadId
from clusterscape.model.access import Role, Viewer
from clusterscape.model.identity_fields import CHECKED_ATTRIBUTE, Reveals
from clusterscape.query.bounds import parse_count
from clusterscape.query.diagnosis.holding import LAYOUT_TAGS
from clusterscape.query.redaction.plans import UnmarkedTextError, compile_plan, read_markers
from clusterscape.query.redaction.pseudonyms import EXPERIMENT, PROJECT, SOURCE, USER, Pseudonyms, WorkloadCodes
from clusterscape.store.records.contract import RecordReader


@dataclass(frozen=True, slots=True)
class ViewerScope:
    """Workloads of ``user`` and of ``projects`` are shown in full; by default none."""

    user: str | None = None
    projects: frozenset[str] = frozenset()

    def covers(self, user: str | None, project: str | None) -> bool:
        """Whether data of this user and project is shown in full."""
        return (user is not None and user == self.user) or (project is not None and project in self.projects)

    @property
    def names(self) -> frozenset[str]:
        """Users and projects that are never redacted in texts."""
        return self.projects if self.user is None else self.projects | {self.user}


NOBODY = ViewerScope()


def scope_of(viewer: Viewer) -> ViewerScope | None:
    """The scope of a viewer; None: the viewer sees all names."""
    if viewer.role.is_at_least(Role.OPERATOR):
        return None
    return ViewerScope(
        viewer.login if viewer.role.is_at_least(Role.RESEARCHER) else None,
        viewer.projects if viewer.role.is_at_least(Role.LEAD) else frozenset(),
    )


def strip_viewer(viewer: Viewer, *, is_private: bool) -> Viewer:
    """The viewer without what does not change answers about the cluster; viewers that are then equal share cached answers."""
    scope = scope_of(viewer) if is_private else None
    if scope is None:
        return Viewer(login=None, role=viewer.role)
    return Viewer(login=scope.user, role=viewer.role, projects=scope.projects)


HIDDEN = "hidden"
"""Replaces texts without a pseudonym that must not be null."""
ANYBODY = "*"
"""In the scope of a rule: all users or projects."""
MAX_TEXTS = 20_000

T = TypeVar("T")
_ID_MARKERS = (Reveals.WORKLOAD_ID, Reveals.UNIT_ID, Reveals.SCOPED_TEXT)
"""In these, only ids that contain names are replaced."""
_OWNED = (Reveals.USER, Reveals.PROJECT, Reveals.EXPERIMENT, Reveals.OWNER_TEXT)
"""Not redacted in rows whose owner the scope covers."""
_KINDS = {Reveals.USER: USER, Reveals.PERSON: USER, Reveals.PROJECT: PROJECT, Reveals.EXPERIMENT: EXPERIMENT}


class ScopeRedactor:
    """Redacts names for viewers of one scope. Thread-safe.

    Ids such as ``slurm:4711`` are not redacted: they contain no name.
    """

    def __init__(self, scope: ViewerScope, names: Pseudonyms, codes: WorkloadCodes, records: RecordReader) -> None:
        """``records``: the unscoped store, to look up the owners of workloads."""
        self.scope = scope
        self.names = names
        self._codes = codes
        self._records = records
        self._texts: dict[str, str] = {}
        self._texts_generation = -1

    @property
    def code(self) -> str:
        """A short hash that identifies the scope."""
        return self.names.code("scope", str(self.scope.user), *sorted(self.scope.projects))

    def redact(self, value: T, kind: Any = None) -> T:
        """Redacts ``value`` by the markers of ``kind`` (by default its own type). Raises UnmarkedTextError."""
        plan = compile_plan(type(value) if kind is None else kind)
        if plan is None or value is None:
            return value
        redacted: T = plan(value, self, False)
        return redacted

    def redact_table(self, table: pl.DataFrame, row: type) -> pl.DataFrame:
        """Redacts ``table``. ``row``: a type whose fields are the columns, with markers."""
        markers = check_columns(table, row)
        covered = self._covered_rows(table, {marker: name for name, marker in markers.items()})
        changed = [
            column.alias(name)
            for name, marker in markers.items()
            if (column := self._redact_column(table[name], marker, covered)) is not None
        ]
        return table.with_columns(changed) if changed else table

    def _covered_rows(self, table: pl.DataFrame, columns: Mapping[Reveals, str]) -> pl.Series:
        user, project = columns.get(Reveals.USER), columns.get(Reveals.PROJECT)
        covered = pl.lit(False)
        if user in table.columns and self.scope.user is not None:
            covered = covered | (pl.col(str(user)).cast(pl.String) == self.scope.user).fill_null(False)
        if project in table.columns and self.scope.projects:
            covered = covered | pl.col(str(project)).cast(pl.String).is_in(sorted(self.scope.projects)).fill_null(False)
        return table.select(pl.repeat(False, pl.len()).alias("covered") | covered).to_series()

    def _redact_column(self, column: pl.Series, marker: Reveals, covered: pl.Series) -> pl.Series | None:
        """The redacted column; None if nothing is hidden. Works on distinct texts, which are far fewer than rows."""
        if marker is Reveals.NOTHING:
            return None
        kind = column.dtype
        distinct = kind.categories if isinstance(kind, pl.Enum) else column.cast(pl.String).drop_nulls().unique()
        if marker in _ID_MARKERS and not distinct.str.contains(SOURCE, literal=True).any():
            return None
        visible = distinct.to_list()
        hidden = [self._redact_text(text, marker) for text in visible]
        if hidden == visible:
            return None
        if marker not in _OWNED:
            covered = pl.repeat(False, len(column), eager=True)
        redacted = _replace_categories(column.cast(pl.Enum(distinct)), visible, hidden, covered)
        return redacted if isinstance(kind, pl.Enum) else redacted.cast(pl.String)

    def _redact_text(self, text: str, marker: Reveals) -> str | None:
        """Redacts a text of a row whose owner is not covered."""
        if marker in _KINDS:
            return self._pseudonym(_KINDS[marker], text)
        if marker in (Reveals.OWNER_TEXT, Reveals.OPERATOR_TEXT, Reveals.OPERATOR_ONLY):
            return None
        return str(self.free_text(text) if marker is Reveals.FREE_TEXT else self.scoped_text(text))

    # The TextRules of ``plans.py``, which redact single values.

    def covers(self, user: str | None, project: str | None) -> bool:
        """Whether the scope covers this owner."""
        return self.scope.covers(user, project)

    def covers_workload(self, workload: str) -> bool:
        """Whether the scope covers the owner of a workload."""
        record = self._records.workload(WorkloadId(workload))
        return record is not None and self.scope.covers(record.user, record.project)

    def user(self, name: str, is_covered: bool | None) -> str:
        """A login, or its pseudonym."""
        return name if is_covered or name == self.scope.user else self._pseudonym(USER, name)

    def project(self, name: str, is_covered: bool | None) -> str:
        """A project, or its pseudonym."""
        return name if is_covered or name in self.scope.projects else self._pseudonym(PROJECT, name)

    def experiment(self, name: str, is_covered: bool | None) -> str:
        """An experiment, or its pseudonym."""
        return name if is_covered else self._pseudonym(EXPERIMENT, name)

    def owner_text(self, text: str, is_covered: bool | None, is_optional: bool) -> str | None:
        """The owner's text if the scope covers the owner; without an owner, the text without names."""
        if is_covered or text == ANYBODY:
            return text
        if is_covered is None:
            return str(self.free_text(text))
        return None if is_optional else HIDDEN

    def tags(self, tags: Mapping[str, str], is_covered: bool | None) -> Mapping[str, str]:
        """All tags, or only the sizes of the parallel layout."""
        if is_covered:
            return tags
        return {tag: size for tag in LAYOUT_TAGS if parse_count(size := tags.get(tag, "")) is not None}

    def free_text(self, value: Any) -> Any:
        """Replaces names by pseudonyms and ids by codes, in a text or in all texts of a document."""
        generation = self.names.refresh()
        if generation != self._texts_generation or len(self._texts) > MAX_TEXTS:
            self._texts, self._texts_generation = {}, generation
        return _map_texts(value, self._scrub)

    def scoped_text(self, value: Any) -> Any:
        """Replaces ids by codes, in a text or in all texts of a document."""
        return _map_texts(value, self._codes.hide_in)

    def _scrub(self, text: str) -> str:
        scrubbed = self._texts.get(text)
        if scrubbed is None:
            scrubbed = self._texts[text] = self.names.scrub(self._codes.hide_in(text), self.scope.names)
        return scrubbed

    def _pseudonym(self, kind: str, name: str) -> str:
        return name if name == ANYBODY or self.names.is_pseudonym(kind, name) else self.names.of(kind, name)


def _replace_categories(
    column: pl.Series, visible: Sequence[str], hidden: Sequence[str | None], covered: pl.Series
) -> pl.Series:
    """An Enum column with ``hidden`` instead of ``visible`` texts in rows that are not covered, without unused categories."""
    codes = column.to_physical().cast(pl.UInt32)
    shown = set(codes.filter(covered).drop_nulls().unique().to_list())
    replaced = set(codes.filter(~covered).drop_nulls().unique().to_list())
    used = [visible[code] for code in sorted(shown)] + [text for code in sorted(replaced) if (text := hidden[code])]
    index_of = {text: index for index, text in enumerate(dict.fromkeys(used))}
    of_shown = pl.Series([index_of.get(text) for text in visible], dtype=pl.UInt32)
    of_hidden = pl.Series([None if text is None else index_of.get(text) for text in hidden], dtype=pl.UInt32)
    chosen = of_shown.gather(codes).zip_with(covered, of_hidden.gather(codes))
    return pl.Series(column.name, list(index_of), dtype=pl.Enum(list(index_of))).gather(chosen)


def check_columns(table: pl.DataFrame, row: type) -> dict[str, Reveals]:
    """The markers of the text columns of ``table``. Raises UnmarkedTextError if one has none."""
    markers = read_markers(row)
    is_checked = CHECKED_ATTRIBUTE in vars(row)
    columns = {}
    for name, kind in table.schema.items():
        if name in markers:
            columns[name] = markers[name]
        elif _holds_text(kind) and not is_checked:
            raise UnmarkedTextError(f"column {name} of a table of {row.__name__} has no marker")
    return columns


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value


def _holds_text(kind: pl.DataType) -> bool:
    while isinstance(kind, pl.List | pl.Array):
        kind = kind.inner  # type: ignore[assignment]  # a class or an instance
    return kind == pl.String or isinstance(kind, pl.Enum | pl.Categorical | pl.Struct | pl.Object)
