"""Tables of a fixed layout from the columns that somebody knows. Knows no layout itself."""

from collections.abc import Mapping

import polars as pl


def fill_table(
    schema: Mapping[str, pl.DataType], columns: Mapping[str, object], height: int, *, what: str
) -> pl.DataFrame:
    """A table of ``schema`` from series, lists, or one value for all rows; columns not given are null.

    Raises ValueError for a column that the layout of ``what`` does not have.
    """
    unknown = set(columns) - set(schema)
    if unknown:
        raise ValueError(f"not columns of {what}: {sorted(unknown)}")
    built = []
    nulls: dict[pl.DataType, pl.Series] = {}  # those of one type share their memory
    for name, kind in schema.items():
        values = columns.get(name)
        if values is None:
            if kind not in nulls:
                nulls[kind] = pl.Series([None], dtype=kind).new_from_index(0, height)
            built.append(nulls[kind].alias(name))
        elif isinstance(values, pl.Series):
            built.append(values.cast(kind).alias(name))
        elif isinstance(values, list):
            built.append(pl.Series(name, values, dtype=kind))
        else:
            built.append(pl.Series(name, [values], dtype=kind).new_from_index(0, height))
    return pl.DataFrame(built)
