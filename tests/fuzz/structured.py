"""Fuzzes a reader with files that are valid but for one or two extreme fields: ``python -m fuzz.structured READER FILES [SEED]``.

A reader may refuse a file with one of our errors. Anything else that it raises, and more memory than MOST_MEMORY_BYTES, is a
finding: the file stays in the folder FUZZ_FINDINGS names. What was read is analyzed as the command line does, every so often.
The last line counts the files that were read, refused, and found to break something.
"""

import contextlib
import copy
import gzip
import json
import os
import pickle
import random
import re
import resource
import sqlite3
import sys
import tempfile
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fuzz.structured_seeds import DELIMITED, DOCUMENTS, LINES, Table, nsight_export, straggler_table
from hangs.made_up import write_case

from clusterscape.collect.hangs import nccl_ras
from clusterscape.errors import ClusterScapeError

MOST_MEMORY_BYTES = 2**30
"""For data of the whole process, its libraries included."""
ANALYZED_EVERY = 5

TEXTS = (
    "", " ", "-1", "0", "1", "-0", "0.5", "1e308", "-1e308", "1e400", "inf", "-Infinity", "nan", "NaN", "NULL", "None", "N/A",
    "[N/A]", "(null)", "Unknown", "true", "0x10", "1_000", "1,5", "１２", "٣", "²", "ä", "\ud7ff", "\x00", "\x1c",
    "\u2028", '"', "''", "\\",
    "|", ",", ";", "9" * 19, "9" * 20, "9" * 400, "9" * 5000, "-" + "9" * 30, "2147483647", "2147483648",
    "4294967294", "4294967295",
    "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1000000000", "1700000000000",
    "1700000000000000", "253402300799", "253402300800", "1e18", "1e-320", "9999-12-31 23:59:59",
    "9999-12-31T23:59:59", "0001-01-01 00:00:00",
    "2023-02-30 00:00:00", "2023-03-26 02:30:00", "2023-01-01 00:00:00+99:99", "2262-04-11 23:47:17",
    "10000-01-01 00:00:00", "1-00:00:00",
    "999999999-23:59:59", "UNLIMITED", "gpu:(null):0(IDX:N/A)", "gres/gpu=99999999999999999999", "gpu[0-999999999]",
    "x" * 300, "x" * 70_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**15, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**9,
    10**30, 10**400,
    0.5, -0.0, 1e15, 4e15, 1e18, 1e19, 1e100, 1e308, -1e308, float("inf"), float("-inf"), float("nan"), 5e-324,
    [], {}, [[]], [None], {"": None}, [0] * 1000, {"set": True, "infinite": False, "number": 2**63}, [[[[[[]]]]]], *TEXTS[:40],
    "1000000000", "9" * 400, "x" * 300, "rank9999999999", "ProfilerStep#999999999", "ProfilerStep#99999999999999",
    "forward mb99999999999",
)  # fmt: skip


class Reader(NamedTuple):
    """Makes a file, and reads it. ``analyze`` does with the result what commands do."""

    write: Callable[[Path, random.Random], Path]
    read: Callable[[Path], Any]
    analyze: Callable[[Any], object]


def _table_writer(table: Table) -> Callable[[Path, random.Random], Path]:
    def write(folder: Path, rng: random.Random) -> Path:
        rows = [list(row) for row in table.rows]
        header = [list(row) for row in table.header]
        for _ in range(rng.choice((0, 1, 1, 2))):
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice(TEXTS)
        shape = rng.random()
        if shape < 0.03 and header:  # a duplicated, an extreme or a missing heading
            header[-1][rng.randrange(len(header[-1]))] = rng.choice([*header[-1], *TEXTS])
        elif shape < 0.06:
            rng.choice(rows).pop()
        elif shape < 0.09:
            rows += rows[: rng.randrange(len(rows))] * rng.choice((1, 50))
        elif shape < 0.11:
            rng.shuffle(rows)
        elif shape < 0.13:
            del rows[rng.randrange(len(rows)) :]
        elif shape < 0.15:  # one field in every row
            column, text = rng.randrange(len(rows[0])), rng.choice(TEXTS)
            for row in rows:
                row[min(column, len(row) - 1)] = text
        lines = [table.separator.join(row) for row in (*header, *rows)]
        if rng.random() < 0.05 and table.comment:
            lines.insert(0, rng.choice(table.comment).replace("#", rng.choice(TEXTS)))
        return _write_bytes(folder / table.name, "\n".join(lines) + "\n", rng)

    return write


def _write_bytes(path: Path, text: str, rng: random.Random) -> Path:
    """The text in some encoding, sometimes compressed or cut."""
    end = rng.choice(("\r\n", "\r", "\n\n")) if rng.random() < 0.02 else "\n"
    text = text.replace("\n", end)
    encoding = (
        rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "utf-32"))
        if rng.random() < 0.05
        else "utf-8"
    )
    data = text.encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")
    kind = rng.random()
    if kind < 0.02:
        data = data[: rng.randrange(len(data) + 1)]
    elif kind < 0.05:
        packed = gzip.compress(data)
        path, data = path.with_name(path.name + ".gz"), packed[: rng.randrange(len(packed) + 1)]
    path.write_bytes(data)
    return path


def _places(document: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    places = [(document, key) for key in keys]
    return places + [place for key in keys if depth < 12 for place in _places(document[key], depth + 1)]


def _mutate_document(document: Any, rng: random.Random) -> str:
    document = json.loads(json.dumps(document))
    for _ in range(rng.choice((0, 1, 1, 2))):
        places = _places(document)
        if not places:
            break
        holder, key = rng.choice(places)
        if rng.random() < 0.1:
            del holder[key]
        elif rng.random() < 0.1 and isinstance(holder, list):
            holder.extend(holder[:1] * rng.choice((1, 100)))
        elif rng.random() < 0.1:
            other, other_key = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[other_key]))
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    sys.set_int_max_str_digits(0)
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)
    shape = rng.random()
    if shape < 0.01:  # nested too deeply
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice("[{") * 100_000 + text[at:]
    elif shape < 0.02:
        text = text.replace(":", ':"":', 1)
    return text


def _document_writer(name: str, document: Any) -> Callable[[Path, random.Random], Path]:
    return lambda folder, rng: _write_bytes(folder / name, _mutate_document(document, rng), rng)


def _write_capture(folder: Path, rng: random.Random) -> Path:
    (folder / "trace_rank0.json").write_text(json.dumps(DOCUMENTS["traces"]["kineto"][1]))
    return _document_writer(*DOCUMENTS["captures"]["capture"])(folder, rng)


def _write_nsight(folder: Path, rng: random.Random) -> Path:
    path = nsight_export(folder / "rank0.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(rng.choice((0, 1, 1, 2))):
            table = rng.choice(tables)
            column = rng.choice([row[1] for row in database.execute(f'PRAGMA table_info("{table}")')])
            value = rng.choice(
                (
                    None,
                    -1,
                    0,
                    2**31,
                    2**62,
                    2**63 - 1,
                    -(2**63),
                    1.5,
                    1e308,
                    "x",
                    "",
                    "9" * 400,
                    b"\xff\x00",
                    "step 99999999999",
                )
            )
            with contextlib.suppress(sqlite3.IntegrityError):
                row = database.execute(f'SELECT rowid FROM "{table}" ORDER BY random() LIMIT 1').fetchone()
                database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row[0]))
            if rng.random() < 0.05:
                database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other{rng.randrange(10**6)}"')
            if rng.random() < 0.03:
                database.execute(f'DROP TABLE "{table}"')
                break
        database.commit()
    if rng.random() < 0.03:
        data = path.read_bytes()
        path.write_bytes(data[: rng.randrange(len(data))])
    return path


HANGS = ("dead", "mismatch", "deadlock", "slow")
_DIGITS = re.compile(r"\d+")


def _write_hang(folder: Path, rng: random.Random) -> Path:
    """A folder of dumps of a hang: one document or text of them with an extreme field. The path is of that file."""
    files = dict(_make_hang(rng.choice(HANGS), rng.randrange(4), rng.random() < 0.6))
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(data)
    name = rng.choice(list(files))
    path, data = folder / name, files[name]
    if data[:1] == b"\x80":
        return _write_pickle(path, pickle.loads(data), rng)
    text = nccl_ras.repair_json(data).decode()
    if text[:1] in "[{":
        return _write_bytes(path, _mutate_document(json.loads(text), rng), rng)
    for _ in range(rng.choice((0, 1, 1, 2))):
        number = rng.choice(list(_DIGITS.finditer(text)))
        text = text[: number.start()] + rng.choice(TEXTS) + text[number.end() :]
    return _write_bytes(path, text, rng)


@lru_cache(maxsize=64)
def _make_hang(kind: str, seed: int, has_recorder: bool) -> tuple[tuple[str, bytes], ...]:
    """The files of a made-up hang; of each dump only its last entries."""
    with tempfile.TemporaryDirectory(prefix="clusterscape-fuzz-") as place:
        write_case(kind, seed, Path(place), has_recorder=has_recorder)
        paths = [path for path in sorted(Path(place).rglob("*")) if path.is_file()]
        return tuple((str(path.relative_to(place)), _shorten(path.read_bytes())) for path in paths)


def _shorten(data: bytes) -> bytes:
    if data[:1] == b"\x80":
        document = pickle.loads(data)
        return pickle.dumps({**document, "entries": document["entries"][-8:]}, protocol=2)
    if data[:1] == b"{" and b'"entries"' in data:
        document = json.loads(data)
        return json.dumps({**document, "entries": document["entries"][-8:]}).encode()
    return data


def _write_pickle(path: Path, document: Any, rng: random.Random) -> Path:
    for _ in range(rng.choice((0, 1, 1, 2))):
        holder, key = rng.choice([place for place in _places(document) if not isinstance(place[0], tuple)])
        value = copy.deepcopy(rng.choice(VALUES))
        holder[key] = value
    data = pickle.dumps(document, protocol=rng.choice((2, 4)))
    shape = rng.random()
    if shape < 0.03:
        data = data[: rng.randrange(len(data) + 1)]
    elif shape < 0.05:  # nested too deeply
        at = rng.randrange(len(data))
        data = data[:at] + rng.choice((b"]" * 100_000, b"](" * 50_000, b"]" * 50_000 + b"a" * 49_000)) + data[at:]
    path.write_bytes(data)
    return path


def _read_hang(path: Path) -> Any:
    from clusterscape.collect.hangs.reading import read_looks

    folder = path.parent.parent
    return read_looks([folder])


def _analyze_hang(looks: Any) -> None:
    from clusterscape.analyze.hang.verdict import judge_hang
    from clusterscape.cli.hang_text import group_lines, hang_lines, stack_lines

    verdict = judge_hang(looks)
    json.dumps(asdict(verdict), allow_nan=False)
    for lines in (hang_lines(verdict), group_lines(verdict), stack_lines(verdict)):
        if any("\n" in line for line in lines):
            raise AssertionError(f"a line has several: {lines!r}")


def _write_straggler(folder: Path, rng: random.Random) -> Path:
    table = straggler_table()
    for _ in range(rng.choice((0, 1, 1, 2))):
        column = rng.choice(table.columns)
        values = table[column].to_list()
        kind = rng.random()
        if kind < 0.1:
            table = table.drop(column)
        elif kind < 0.3:
            table = table.with_columns(pl.Series(column, [str(value) for value in values]))
        else:
            extremes = (None, -1, 0, 2**31, 2**40, 2**62, 1e15, 1e308, float("inf"), float("nan"), -1e9)
            values[rng.randrange(len(values))] = rng.choice(extremes)
            with contextlib.suppress(TypeError, OverflowError, pl.exceptions.PolarsError):
                table = table.with_columns(pl.Series(column, values, strict=False))
        if not table.columns:
            break
    path = folder / "job.parquet"
    table.write_parquet(path)
    return path


def _read_job_trace(path: Path) -> Any:
    from clusterscape.collect.job_traces import read_trace

    return read_trace(path)


def _analyze_job_trace(trace: Any) -> None:
    from clusterscape.analyze.jobs.describe import describe_traces
    from clusterscape.simulate.batch import (
        PRESETS,
        Backfill,
        Scenario,
        compute_measures,
        find_policy,
        prepare_jobs,
        simulate,
    )

    json.dumps(asdict(describe_traces([trace])), allow_nan=False)
    total = trace.total or int(np.ceil(trace.size.cast(pl.Float64).max()))
    if total > 0:
        with contextlib.suppress(ClusterScapeError):
            semantics = PRESETS["pyss"]
            jobs, _ = prepare_jobs(trace, total, estimates="request", semantics=semantics)
            scenario = Scenario(jobs, total, find_policy("fcfs"), Backfill("easy"), "request", semantics)
            compute_measures(simulate(scenario))


def _read_profile(path: Path) -> Any:
    from clusterscape.collect.traces import read_traces

    return read_traces([path.parent], workers=1)


def _analyze_profile(trace: Any) -> None:
    from clusterscape.analyze.trace.document import pack_trace
    from clusterscape.analyze.trace.report import analyze_trace
    from clusterscape.model.trace_report import encode_report

    encode_report(pack_trace(analyze_trace(trace, np.random.default_rng(0))).document)


def _read_slurm(path: Path) -> Any:
    from clusterscape.collect.slurm.faults import parse_response
    from clusterscape.collect.slurm.parse_history import parse_history
    from clusterscape.collect.slurm.parse_jobs import parse_jobs
    from clusterscape.collect.slurm.parse_nodes import parse_nodes, parse_partitions
    from clusterscape.collect.slurm.parse_rules import parse_reservations
    from clusterscape.model import UnixMs

    data = path.read_bytes()
    inventory = parse_nodes(parse_response(data, request="fuzz", key="nodes"))
    parse_partitions(parse_response(data, request="fuzz", key="partitions"), inventory)
    jobs = parse_response(data, request="fuzz", key="jobs")
    parse_reservations(jobs)
    now = UnixMs(1_700_000_000_000)
    return parse_jobs(jobs, inventory, now), parse_history(jobs, inventory, now)


def _read_slurm_text(path: Path) -> Any:
    from clusterscape.collect.slurm import text_output
    from clusterscape.collect.slurm.parse_history import parse_history
    from clusterscape.collect.slurm.parse_jobs import parse_jobs
    from clusterscape.collect.slurm.parse_nodes import parse_nodes
    from clusterscape.model import UnixMs

    text = path.read_bytes().decode("utf-8", "replace")
    now = UnixMs(1_700_000_000_000)
    inventory = parse_nodes(text_output.parse_nodes_text(text))
    queue = parse_jobs(text_output.parse_jobs_text(text), inventory, now)
    return queue, parse_history(text_output.parse_history_text(text), inventory, now)


def _read_smi(path: Path) -> Any:
    from datetime import UTC

    from clusterscape.cli.recorded_lives import read_recorded_lives

    return read_recorded_lives(path, None, zone=UTC)


def _nothing(_: Any) -> None:
    """What was read has no analysis of its own."""


READERS: dict[str, Reader] = {
    **{name: Reader(_table_writer(table), _read_job_trace, _analyze_job_trace) for name, table in DELIMITED.items()},
    **{
        name: Reader(_document_writer(file, document), _read_job_trace, _analyze_job_trace)
        for name, (file, document) in DOCUMENTS["job_traces"].items()
    },
    **{
        name: Reader(_document_writer(file, document), _read_profile, _analyze_profile)
        for name, (file, document) in DOCUMENTS["traces"].items()
    },
    "capture": Reader(_write_capture, _read_profile, _analyze_profile),
    "nsight": Reader(_write_nsight, _read_profile, _analyze_profile),
    "hang": Reader(_write_hang, _read_hang, _analyze_hang),
    "straggler": Reader(_write_straggler, _read_profile, _analyze_profile),
    "slurm": Reader(_document_writer("slurm.json", DOCUMENTS["slurm"]["slurm"][1]), _read_slurm, _nothing),
    "slurm_text": Reader(_table_writer(LINES["slurm_text"]), _read_slurm_text, _nothing),
    "nvidia_smi": Reader(_table_writer(LINES["nvidia_smi"]), _read_smi, _nothing),
}


def run(name: str, files: int, seed: int, findings: Path | None) -> Counter[str]:
    """Counts of read, refused and broken files."""
    reader = READERS[name]
    counts: Counter[str] = Counter(read=0, refused=0, broken=0)
    warnings.simplefilter("error")
    for number in range(files):
        rng = random.Random(zlib.crc32(f"{name} {seed} {number}".encode()))
        with tempfile.TemporaryDirectory(prefix="clusterscape-fuzz-") as place:
            path = reader.write(Path(place), rng)
            try:
                value = reader.read(path)
                counts["read"] += 1
                if number % ANALYZED_EVERY == 0:
                    reader.analyze(value)
            except ClusterScapeError as error:
                counts["refused"] += 1
                if not error.message or "\n" in error.message or len(error.message) > 1000:
                    _report(counts, name, number, path, findings, f"not a sentence: {error.message[:300]!r}")
            except Exception:
                _report(counts, name, number, path, findings, traceback.format_exc())
    return counts


def _report(counts: Counter[str], name: str, number: int, path: Path, findings: Path | None, text: str) -> None:
    counts["broken"] += 1
    sys.stderr.write(f"--- {name} {number} {path.name}\n{text}\n")
    if findings is not None:
        kept = findings / f"{name}-{number}-{path.name}"
        kept.write_bytes(path.read_bytes())
        kept.with_name(kept.name + ".txt").write_text(text)


def main(arguments: Sequence[str]) -> int:
    """Run; 1 if anything broke."""
    name, files, seed = arguments[0], int(arguments[1]), int(arguments[2]) if len(arguments) > 2 else 0
    place = os.environ.get("FUZZ_FINDINGS")
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    counts = run(name, files, seed, Path(place) if place else None)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"reader": name, **counts, "peak_mib": peak_mib}))
    return int(counts["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
