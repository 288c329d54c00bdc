"""Polars frames from the rows of JSON responses, with the types that the server's schema declares.

Nested objects become columns such as ``times.running_s`` and ``params.lr``; fields that are Unix ms become times in UTC.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

TIME = pl.Datetime("ms", "UTC")
TIMES = frozenset({"at", "since", "until", "start", "end"})
"""Fields with times whose names do not end in ``_at``."""

_TYPES: Mapping[str, pl.DataType] = {
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "string": pl.String(),
    "boolean": pl.Boolean(),
}

Types = Mapping[str, pl.DataType]


class ResponseSchema:
    """The OpenAPI document of a server."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._paths = document["paths"]
        self._schemas = document["components"]["schemas"]

    def has_parameter(self, path: str, name: str) -> bool:
        """Whether ``GET path`` takes a parameter."""
        return any(parameter["name"] == name for parameter in self._paths[path]["get"].get("parameters", ()))

    def row_types(self, path: str, field: str | None) -> Types:
        """The columns of the rows that ``GET path`` returns, in the list ``field`` or as the response itself."""
        response = self._paths[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        rows = response if field is None else self._resolve(response)["properties"][field]
        return dict(self._columns("", self._resolve(rows["items"])))

    def _columns(self, prefix: str, row: Mapping[str, Any]) -> list[tuple[str, pl.DataType]]:
        columns: list[tuple[str, pl.DataType]] = []
        for name, declared in row.get("properties", {}).items():
            field = self._resolve(declared)
            kind = field.get("type", "string")
            if kind == "object":
                columns += self._columns(f"{prefix}{name}.", field)
            elif kind in _TYPES:
                columns.append((f"{prefix}{name}", TIME if _is_time(name, kind) else _TYPES[kind]))
            elif kind == "array" and self._resolve(field["items"]).get("type") in _TYPES:
                columns.append((f"{prefix}{name}", pl.List(_TYPES[self._resolve(field["items"])["type"]])))
        return columns

    def _resolve(self, declared: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without references and without the alternative null."""
        if "$ref" in declared:
            return self._resolve(self._schemas[declared["$ref"].rsplit("/", 1)[-1]])
        options = [option for option in declared.get("anyOf", ()) if option.get("type") != "null"]
        return self._resolve(options[0]) if options else declared


def rows_to_frame(rows: Sequence[Mapping[str, Any]], types: Types) -> pl.DataFrame:
    """One row each, null where a field is missing. Columns keep the order of the response; new params come last."""
    flat = [_flatten(row) for row in rows]
    names = dict.fromkeys([*types, *(name for row in flat for name in row)])
    empty = {prefix for name in names for prefix in _prefixes(name)}
    columns = [name for name in names if name not in empty]
    return pl.DataFrame(
        [
            pl.Series(
                name, [row.get(name) for row in flat], dtype=pl.Int64 if types.get(name) == TIME else types.get(name)
            )
            for name in columns
        ]
    ).with_columns(pl.col(name).cast(TIME) for name in columns if types.get(name) == TIME)


def with_time(frame: pl.DataFrame) -> pl.DataFrame:
    """The same samples with ``time`` in place of ``time_ms``."""
    return frame.with_columns(pl.col("time_ms").cast(pl.Int64).cast(TIME)).rename({"time_ms": "time"})


def _flatten(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _prefixes(name: str) -> list[str]:
    """``a.b.c`` is below ``a`` and ``a.b``; where those are null, they have no column of their own."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _is_time(name: str, kind: str) -> bool:
    return kind == "integer" and (name.endswith("_at") or name in TIMES)
