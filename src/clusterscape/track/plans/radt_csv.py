"""Reads radT's CSV, and writes the columns Status and Run back; the file is replaced atomically."""

import csv
import difflib
import io
import os
from collections.abc import Mapping
from pathlib import Path

from clusterscape.errors import ConfigError, StoreError
from clusterscape.track.plans.plan import PlannedRun, RunPlan, make_run

COLUMNS = ("Experiment", "Workload", "Status", "Run", "Devices", "Collocation", "File", "Listeners", "Params")
OPTIONAL = ("Name",)
_NEEDED = ("Experiment", "Workload", "File")


def read_csv_plan(path: Path) -> RunPlan:
    """The plan; raises ConfigError naming line and column."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint="Give an existing file.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8", hint="Save it as UTF-8.") from None
    rows = _rows(text, path)
    if not rows:
        raise ConfigError(f"{path} is empty", hint=f"Its first line names the columns: {','.join(COLUMNS)}.")
    header = [cell.strip() for cell in rows[0][1]]
    _check_header(header, path)
    book = CsvBook(path, header, rows)
    runs = [_run(path, header, line, cells) for line, cells in rows[1:] if any(cell.strip() for cell in cells)]
    return RunPlan(path=path, runs=runs, book=book)


class CsvBook:
    """Status and Run columns of the file."""

    def __init__(self, path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
        self._path = path
        self._header = header
        self._rows = rows
        for column in ("Status", "Run"):
            if column not in header:
                header.append(column)

    def status(self, key: str) -> str:
        """The status in the file."""
        return self._cell(key, "Status")

    def write(self, updates: Mapping[str, tuple[str, str]]) -> None:
        """Replace the file."""
        for line, cells in self._rows[1:]:
            if str(line) in updates:
                cells += [""] * (len(self._header) - len(cells))
                for column, value in zip(("Status", "Run"), updates[str(line)], strict=True):
                    cells[self._header.index(column)] = value
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._header)
        writer.writerows(cells for _, cells in self._rows[1:])
        _replace(self._path, text.getvalue())

    def _cell(self, key: str, column: str) -> str:
        place = self._header.index(column)
        cells = next(cells for line, cells in self._rows[1:] if str(line) == key)
        return cells[place].strip() if place < len(cells) else ""


def _rows(text: str, path: Path) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise ConfigError(
            f"{path}, line {reader.line_num}: {error}", hint='Quotes stand around whole cells; inside, " is written "".'
        ) from None
    return [row for row in rows if row[1]]


def _check_header(header: list[str], path: Path) -> None:
    allowed = (*COLUMNS, *OPTIONAL)
    for name in header:
        if name not in allowed:
            close = difflib.get_close_matches(name, allowed, n=1)
            hint = f"Did you mean `{close[0]}`? " if close else ""
            raise ConfigError(f"{path}: unknown column `{name}`", hint=f"{hint}Columns are: {', '.join(allowed)}.")
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise ConfigError(f"{path} has no column {', '.join(missing)}", hint=f"Columns are: {', '.join(COLUMNS)}.")


def _run(path: Path, header: list[str], line: int, cells: list[str]) -> PlannedRun:
    columns = [name for name in header if name not in ("Status", "Run")]
    if len(cells) > len(header):
        raise ConfigError(
            f"{path}, line {line}: {len(cells)} cells for {len(header)} columns",
            hint="A cell that holds a comma needs quotes around it.",
        )
    row = dict.fromkeys(columns, "") | dict(zip(header, cells, strict=False))
    return make_run(
        key=str(line),
        place=f"{path.name}, line {line}",
        base=path.parent.resolve(),
        experiment=row["Experiment"],
        workload=row["Workload"],
        file=row["File"],
        params=row.get("Params", ""),
        devices=row.get("Devices", ""),
        collocation=row.get("Collocation", ""),
        listeners=row.get("Listeners", ""),
        name=row.get("Name") or None,
    )


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write {path}: {error.strerror}", hint="The plan resumes from its last state."
        ) from None
