"""Redacts answers, records and tables for one viewer scope, by the markers of their types. The only place that hides names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from clusterscape.model import WorkloadId
from clusterscape.model.identity_fields import CHECKED_ATTRIBUTE, Reveals
from clusterscape.query.diagnosis.holding import LAYOUT_TAGS
from clusterscape.query.redaction.plans import UnmarkedTextError, compile_plan, read_markers
from clusterscape.query.redaction.pseudonyms import EXPERIMENT, PROJECT, USER, Pseudonyms
from clusterscape.query.redaction.viewer_scope import ViewerScope
from clusterscape.query.redaction.workload_codes import SOURCE, WorkloadCodes
from clusterscape.store.records.contract import RecordStore

HIDDEN = "hidden"
"""In place of what has no pseudonym and cannot be left out."""
ANYBODY = "*"
"""In the scope of a rule: it names nobody."""
MOST_TEXTS = 20_000

T = TypeVar("T")
_ID_MARKERS = (Reveals.WORKLOAD_ID, Reveals.UNIT_ID, Reveals.SCOPED_TEXT)
"""Nothing is replaced in these but ids that are names."""
_OWNED = (Reveals.USER, Reveals.PROJECT, Reveals.EXPERIMENT, Reveals.OWNER_TEXT)
"""Shown in rows whose owner the scope covers."""
_KINDS = {Reveals.USER: USER, Reveals.PERSON: USER, Reveals.PROJECT: PROJECT, Reveals.EXPERIMENT: EXPERIMENT}


class Redactor:
    """What stands in place of names for viewers of one scope. Thread-safe.

    An id such as ``slurm:4711`` names nobody: it is a number that the scheduler gave.
    """

    def __init__(self, scope: ViewerScope, names: Pseudonyms, codes: WorkloadCodes, records: RecordStore) -> None:
        """``records``: the site's own store, which knows whose a workload is."""
        self.scope = scope
        self.names = names
        self._codes = codes
        self._records = records
        self._texts: dict[str, str] = {}
        self._texts_of = -1

    @property
    def code(self) -> str:
        """A few letters and digits that stand for the scope."""
        return self.names.code("scope", str(self.scope.user), *sorted(self.scope.projects))

    def redact(self, value: T, kind: Any = None) -> T:
        """``value`` as the viewer may read it, by the markers of ``kind`` (by default its own type). Raises UnmarkedTextError."""
        plan = compile_plan(type(value) if kind is None else kind)
        if plan is None or value is None:
            return value
        redacted: T = plan(value, self, False)
        return redacted

    def redact_table(self, table: pl.DataFrame, row: type) -> pl.DataFrame:
        """``table`` as the viewer may read it. ``row``: a type whose markers say what the columns of its names hold."""
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
        """None where nothing is hidden. By its distinct texts: a column has far more rows than texts."""
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
        """Of a row whose owner is not covered."""
        if marker in _KINDS:
            return self._stand_in(_KINDS[marker], text)
        if marker in (Reveals.OWNER_TEXT, Reveals.OPERATOR_TEXT, Reveals.OPERATOR_ONLY):
            return None
        return str(self.free_text(text) if marker is Reveals.FREE_TEXT else self.scoped_text(text))

    # the rules by which ``plans.py`` redacts single values

    def covers(self, user: str | None, project: str | None) -> bool:
        """Whether the scope covers this owner."""
        return self.scope.covers(user, project)

    def covers_workload(self, workload: str) -> bool:
        """Whether the scope covers the owner of a workload."""
        record = self._records.workload(WorkloadId(workload))
        return record is not None and self.scope.covers(record.user, record.project)

    def user(self, name: str, is_covered: bool | None) -> str:
        """A login, or its pseudonym."""
        return name if is_covered or name == self.scope.user else self._stand_in(USER, name)

    def project(self, name: str, is_covered: bool | None) -> str:
        """A project, or its pseudonym."""
        return name if is_covered or name in self.scope.projects else self._stand_in(PROJECT, name)

    def experiment(self, name: str, is_covered: bool | None) -> str:
        """An experiment, or its pseudonym."""
        return name if is_covered else self._stand_in(EXPERIMENT, name)

    def owner_text(self, text: str, is_covered: bool | None, is_optional: bool) -> str | None:
        """What the owner wrote; of what is nobody's, without names."""
        if is_covered or text == ANYBODY:
            return text
        if is_covered is None:
            return str(self.free_text(text))
        return None if is_optional else HIDDEN

    def tags(self, tags: Mapping[str, str], is_covered: bool | None) -> Mapping[str, str]:
        """Tags, or only the sizes of the parallel layout."""
        if is_covered:
            return tags
        return {tag: size for tag in LAYOUT_TAGS if (size := tags.get(tag, "")).isdigit()}

    def free_text(self, value: Any) -> Any:
        """A text, or every text of a document, with pseudonyms in place of names and codes in place of ids."""
        generation = self.names.refresh()
        if generation != self._texts_of or len(self._texts) > MOST_TEXTS:
            self._texts, self._texts_of = {}, generation
        return _map_texts(value, self._scrub)

    def scoped_text(self, value: Any) -> Any:
        """A text, or every text of a document, with codes in place of ids."""
        return _map_texts(value, self._codes.hide_in)

    def _scrub(self, text: str) -> str:
        scrubbed = self._texts.get(text)
        if scrubbed is None:
            scrubbed = self._texts[text] = self.names.scrub(self._codes.hide_in(text), self.scope.names)
        return scrubbed

    def _stand_in(self, kind: str, name: str) -> str:
        return name if name == ANYBODY or self.names.is_pseudonym(kind, name) else self.names.of(kind, name)


def _replace_categories(
    column: pl.Series, visible: Sequence[str], hidden: Sequence[str | None], covered: pl.Series
) -> pl.Series:
    """An Enum with ``hidden`` in place of ``visible`` where a row is not covered; of both it has only those that rows hold."""
    codes = column.to_physical().cast(pl.UInt32)
    shown = set(codes.filter(covered).drop_nulls().unique().to_list())
    replaced = set(codes.filter(~covered).drop_nulls().unique().to_list())
    kept = [visible[code] for code in sorted(shown)] + [text for code in sorted(replaced) if (text := hidden[code])]
    places = {text: place for place, text in enumerate(dict.fromkeys(kept))}
    of_shown = pl.Series([places.get(text) for text in visible], dtype=pl.UInt32)
    of_hidden = pl.Series([None if text is None else places.get(text) for text in hidden], dtype=pl.UInt32)
    chosen = of_shown.gather(codes).zip_with(covered, of_hidden.gather(codes))
    return pl.Series(column.name, list(places), dtype=pl.Enum(list(places))).gather(chosen)


def check_columns(table: pl.DataFrame, row: type) -> dict[str, Reveals]:
    """The markers of the columns of ``table`` that hold texts. Raises UnmarkedTextError where one has none."""
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
