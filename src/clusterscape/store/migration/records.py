"""Moves all records from one database to another, whichever engine each has, in one transaction, and compares them there."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy import Engine

from clusterscape.errors import StoreError
from clusterscape.store.records.dump import count_rows, dump_rows, load_rows
from clusterscape.store.records.faults import explained
from clusterscape.store.records.migrations import bring_up_to_date

Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class MovedRows:
    """The rows of one table; ``checksum`` is of all their columns, in any order of rows."""

    table: str
    rows: int
    checksum: str


def count_records(source: Engine) -> dict[str, int]:
    """How many rows each table has."""
    with source.connect() as connection:
        return count_rows(connection)


def move_records(source: Engine, target: Engine, tell: Tell) -> list[MovedRows]:
    """Copy, all or nothing, then compare. A target that holds the same already (from an earlier run) is only compared."""
    where = str(target.url.render_as_string(hide_password=True))
    with explained(where):
        bring_up_to_date(target, where)
        total = sum(count_records(source).values())
        with target.connect() as connection:
            is_empty = not any(count_rows(connection).values())
        if is_empty:
            done = 0

            def told() -> Iterator[tuple[str, bytes]]:
                nonlocal done
                for table, lines in dump_rows(source):
                    done += lines.count(b"\n")
                    tell(done, total * 2, f"records: {table}")
                    yield table, lines

            load_rows(target, told(), where=where)
        tell(total, total * 2, "checking records")
        here, there = summarize(source), summarize(target)
        if here != there:
            raise _difference(here, there, where, was_empty=is_empty)
        tell(total * 2, total * 2, "records")
    return here


def summarize(engine: Engine) -> list[MovedRows]:
    """Every table that has rows, with their number and checksum."""
    found: dict[str, tuple[int, int]] = {}
    for table, lines in dump_rows(engine):
        count, checksum = found.get(table, (0, 0))
        for line in lines.splitlines():
            checksum += int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "big")
            count += 1
        found[table] = (count, checksum % 2**64)
    return [MovedRows(table, count, f"{checksum:016x}") for table, (count, checksum) in found.items() if count]


def _difference(here: list[MovedRows], there: list[MovedRows], where: str, *, was_empty: bool) -> StoreError:
    other = {each.table: each for each in there}
    own = {each.table: each for each in here}
    tables = [name for name in own | other if own.get(name) != other.get(name)]
    if was_empty:
        return StoreError(
            f"the records in {where} are not what they were: {', '.join(tables)}",
            hint="Report this as a defect; the old ones are as they were.",
        )
    return StoreError(
        f"{where} already holds other records ({', '.join(tables)})",
        hint="Move into an empty database or folder; nothing was changed.",
    )
