"""Compiles a type into the function that redacts its values, once per type, from the markers of ``model/identity_fields.py``.

A text, an untyped document or an unknown type without a marker raises UnmarkedTextError, so that unmarked data is never sent.
"""

import dataclasses
import enum
import threading
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, NewType, Protocol, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel

from clusterscape.model import NodeId, UnitId, UnixMs, WorkloadId
from clusterscape.model.identity_fields import CHECKED_ATTRIBUTE, Reveals


class UnmarkedTextError(TypeError):
    """A type has a text field without a marker."""


class TextRules(Protocol):
    """Redacts each kind of text for one viewer; returns the same object if nothing is hidden.

    ``is_covered``: whether the viewer's scope covers the owner; None: there is no owner.
    """

    def covers(self, user: str | None, project: str | None) -> bool:
        """Whether the viewer's scope covers this owner."""
        ...

    def covers_workload(self, workload: str) -> bool:
        """Whether the viewer's scope covers the owner of a workload."""
        ...

    def user(self, name: str, is_covered: bool | None) -> str:
        """Redacts a login."""
        ...

    def project(self, name: str, is_covered: bool | None) -> str:
        """Redacts a project."""
        ...

    def experiment(self, name: str, is_covered: bool | None) -> str:
        """Redacts an experiment."""
        ...

    def owner_text(self, text: str, is_covered: bool | None, is_optional: bool) -> str | None:
        """Redacts a text that the owner wrote."""
        ...

    def tags(self, tags: Mapping[str, str], is_covered: bool | None) -> Mapping[str, str]:
        """Redacts the tags of a workload."""
        ...

    def free_text(self, value: Any) -> Any:
        """Redacts names in a text of any author, or in all texts of a document."""
        ...

    def scoped_text(self, value: Any) -> Any:
        """Redacts ids in a text, or in all texts of a document."""
        ...


Plan = Callable[[Any, TextRules, bool | None], Any]
"""(value, the viewer's rules, whether the scope covers the owner) → the redacted value; the same object if nothing is hidden."""

WITHHELD = "hidden; operators can see it"
"""Replaces a text that only operators may see."""

IDS: Mapping[object, Reveals] = {
    WorkloadId: Reveals.WORKLOAD_ID,
    UnitId: Reveals.UNIT_ID,
    NodeId: Reveals.NOTHING,
    UnixMs: Reveals.NOTHING,
}
OWNER_MARKS = (Reveals.USER, Reveals.PROJECT, Reveals.WORKLOAD_ID)
_PLAIN = (bool, int, float, type(None), datetime)


def compile_plan(kind: Any) -> Plan | None:
    """The function that redacts values of ``kind``; None: they have nothing to redact. Raises UnmarkedTextError."""
    with _LOCK:
        if kind not in _PLANS:
            name = getattr(kind, "__name__", str(kind))
            _PLANS[kind] = _compile(kind, name, is_checked=False, is_optional=False)
        return _PLANS[kind]


def _compile(kind: Any, where: str, *, is_checked: bool, is_optional: bool) -> Plan | None:
    marker = _find_marker(kind)
    if marker is not None:
        return _compile_marked(marker, is_optional)
    if isinstance(kind, NewType):
        kind = kind.__supertype__
    origin = get_origin(kind)
    if origin is Annotated:
        return _compile(get_args(kind)[0], where, is_checked=is_checked, is_optional=is_optional)
    if kind is None or kind in _PLAIN or origin is Literal:
        return None
    if isinstance(kind, type) and origin is None and issubclass(kind, enum.Enum):
        return None
    if origin in (Union, types.UnionType):
        return _compile_union(get_args(kind), where, is_checked)
    if origin in (list, tuple, set, frozenset, Sequence, AbstractSet):
        return _compile_items(origin, get_args(kind), where, is_checked)
    if origin in (dict, Mapping):
        return _compile_mapping(get_args(kind), where, is_checked)
    if _is_struct(kind):
        return _find_struct(kind)
    if is_checked and (kind in (str, object) or kind is Any):
        return None
    raise UnmarkedTextError(
        f"{where} is a {getattr(kind, '__name__', kind)} without a marker: add one of model/identity_fields.py"
    )


def _find_marker(kind: Any) -> Reveals | None:
    if isinstance(kind, NewType):
        return IDS.get(kind)
    if get_origin(kind) is Annotated:
        return next((item for item in kind.__metadata__ if isinstance(item, Reveals)), None)
    return None


def _compile_marked(marker: Reveals, is_optional: bool) -> Plan | None:
    if marker is Reveals.OWNER_TEXT:
        return lambda text, rules, is_covered: rules.owner_text(text, is_covered, is_optional)
    if marker is Reveals.OPERATOR_ONLY:
        return lambda value, *_: None if is_optional else type(value)()
    return _TEXT_PLANS[marker]


_TEXT_PLANS: Mapping[Reveals, Plan | None] = {
    Reveals.NOTHING: None,
    Reveals.USER: lambda name, rules, is_covered: rules.user(name, is_covered),
    Reveals.PERSON: lambda name, rules, _: rules.user(name, False),
    Reveals.PROJECT: lambda name, rules, is_covered: rules.project(name, is_covered),
    Reveals.EXPERIMENT: lambda name, rules, is_covered: rules.experiment(name, is_covered),
    Reveals.WORKLOAD_ID: lambda text, rules, _: rules.scoped_text(text),
    Reveals.UNIT_ID: lambda text, rules, _: rules.scoped_text(text),
    Reveals.TAGS: lambda tags, rules, is_covered: rules.tags(tags, is_covered),
    Reveals.FREE_TEXT: lambda value, rules, _: rules.free_text(value),
    Reveals.SCOPED_TEXT: lambda value, rules, _: rules.scoped_text(value),
    Reveals.OPERATOR_TEXT: lambda *_: WITHHELD,
    Reveals.REDACTION_FLAG: lambda *_: True,
}


def _compile_union(arms: Sequence[Any], where: str, is_checked: bool) -> Plan | None:
    is_optional = type(None) in arms
    plans = [
        (_classes_of(arm), _compile(arm, where, is_checked=is_checked, is_optional=is_optional))
        for arm in arms
        if arm is not type(None)
    ]
    if all(plan is None for _, plan in plans):
        return None
    if len(plans) == 1:
        return partial(_keep_missing, plans[0][1])

    def redact(value: Any, rules: TextRules, is_covered: bool | None) -> Any:
        if value is None:
            return None
        for kinds, plan in plans:
            if isinstance(value, kinds):
                return _apply(plan, value, rules, is_covered)
        raise UnmarkedTextError(f"{where} holds a {type(value).__name__}, which its type does not include")

    return redact


def _keep_missing(plan: Plan | None, value: Any, rules: TextRules, is_covered: bool | None) -> Any:
    return None if value is None else _apply(plan, value, rules, is_covered)


def _classes_of(kind: Any) -> tuple[type, ...]:
    """The classes of which values of a type are instances; a list may be a tuple, and a float an int."""
    if isinstance(kind, NewType):
        kind = kind.__supertype__
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    origin = get_origin(kind) or kind
    if origin is Literal:
        return tuple({type(value) for value in get_args(kind)})
    if origin in (list, tuple, Sequence):
        return (list, tuple)
    if origin is dict:
        return (Mapping,)
    return (float, int) if origin is float else (origin,)


def _compile_items(origin: Any, arms: Sequence[Any], where: str, is_checked: bool) -> Plan | None:
    if origin is tuple and arms[-1:] != (...,):
        plans = [_compile(arm, where, is_checked=is_checked, is_optional=False) for arm in arms]
        if any(plan is not None for plan in plans):
            raise UnmarkedTextError(f"{where} is a tuple of texts: use named fields")
        return None
    plan = _compile(arms[0], where, is_checked=is_checked, is_optional=False)
    if plan is None:
        return None
    build = {tuple: tuple, set: set, frozenset: frozenset, AbstractSet: frozenset}.get(origin, list)

    def redact(values: Iterable[Any], rules: TextRules, is_covered: bool | None) -> Any:
        return build(plan(value, rules, is_covered) for value in values)

    return redact


def _compile_mapping(arms: Sequence[Any], where: str, is_checked: bool) -> Plan | None:
    keys, values = (_compile(arm, where, is_checked=is_checked, is_optional=False) for arm in arms)
    if keys is None and values is None:
        return None

    def redact(mapping: Mapping[Any, Any], rules: TextRules, is_covered: bool | None) -> dict[Any, Any]:
        return {
            key if keys is None else keys(key, rules, is_covered): (
                value if values is None else values(value, rules, is_covered)
            )
            for key, value in mapping.items()
        }

    return redact


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or issubclass(kind, BaseModel | msgspec.Struct)
    )


_LOCK = threading.RLock()
_PLANS: dict[Any, Plan | None] = {}
_STRUCTS: dict[type, Plan | None] = {}
_COMPILING: set[type] = set()
"""Structs whose plan is being compiled; a recursive struct looks its plan up when it is used."""


def _find_struct(kind: type) -> Plan | None:
    if kind not in _STRUCTS:
        if kind in _COMPILING:
            return lambda value, rules, is_covered: _apply(_STRUCTS[kind], value, rules, is_covered)
        _COMPILING.add(kind)
        try:
            _STRUCTS[kind] = _compile_struct(kind)
        finally:
            _COMPILING.discard(kind)
    return _STRUCTS[kind]


def _apply(plan: Plan | None, value: Any, rules: TextRules, is_covered: bool | None) -> Any:
    return value if plan is None else plan(value, rules, is_covered)


def _compile_struct(kind: type) -> Plan | None:
    """The plan of a dataclass, pydantic model or msgspec struct. Its own markers determine the owner of its fields."""
    hints = _field_types(kind)
    is_checked = CHECKED_ATTRIBUTE in vars(kind)
    steps: list[tuple[str, Plan]] = []
    owner: dict[Reveals, str] = {}
    for name, hint in hints.items():
        marker = _find_owner_marker(hint)
        if marker is not None:
            owner.setdefault(marker, name)
        plan = _compile(hint, f"{kind.__name__}.{name}", is_checked=is_checked, is_optional=False)
        if plan is not None:
            steps.append((name, plan))
    if not steps:
        return None
    find_owner = _owner_finder(owner)
    copy = _copier(kind)

    def redact(value: Any, rules: TextRules, is_covered: bool | None) -> Any:
        if find_owner is not None:
            is_covered = find_owner(value, rules)
        changes = {}
        for name, plan in steps:
            old = getattr(value, name)
            if old is not None:
                new = plan(old, rules, is_covered)
                if new is not old:
                    changes[name] = new
        return copy(value, changes) if changes else value

    return redact


def _field_types(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    if issubclass(kind, msgspec.Struct):
        return {name: hints[name] for name in kind.__struct_fields__}
    if issubclass(kind, tuple):
        return hints
    return {name: hints[name] for name in cast(type[BaseModel], kind).model_fields}


def _find_owner_marker(hint: Any) -> Reveals | None:
    """The marker of a field that holds a single owner; a list of users is none."""
    arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    markers = {marker for arm in arms if (marker := _find_marker(arm)) in OWNER_MARKS}
    return next(iter(markers), None)


def _owner_finder(fields: Mapping[Reveals, str]) -> Callable[[Any, TextRules], bool | None] | None:
    """A function that returns whether the scope covers the owner of a value; a workload is looked up only if needed (slow)."""
    user, project, workload = (fields.get(marker) for marker in OWNER_MARKS)
    if user is None and project is None and workload is None:
        return None
    needs_lookup = user is None or project is None

    def covers_owner(value: Any, rules: TextRules) -> bool | None:
        if rules.covers(user and getattr(value, user), project and getattr(value, project)):
            return True
        if workload is None:
            return False
        workload_id = getattr(value, workload)
        return None if workload_id is None else needs_lookup and rules.covers_workload(workload_id)

    return covers_owner


def _copier(kind: type) -> Callable[[Any, dict[str, Any]], Any]:
    if issubclass(kind, BaseModel):
        return lambda value, changes: value.model_copy(update=changes)
    if issubclass(kind, tuple):
        return lambda value, changes: value._replace(**changes)
    if issubclass(kind, msgspec.Struct):
        return lambda value, changes: msgspec.structs.replace(value, **changes)
    return lambda value, changes: dataclasses.replace(value, **changes)


def read_markers(row: type) -> dict[str, Reveals]:
    """The markers of a type whose fields describe the columns of a table."""
    markers: dict[str, Reveals] = {}
    for name, hint in get_type_hints(row, include_extras=True).items():
        arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        marker = next((marker for arm in arms if (marker := _find_marker(arm)) is not None), None)
        if marker is not None:
            markers[name] = marker
    return markers
