"""Reads a folder of dumps into looks: finds the files, detects the format of each, and determines its rank and its look.

Names may be any. A rank is the number after ``rank`` in a name, else the number that differs between names, else the pid that
another source gives a rank. Two files of one rank and format are two looks; the folder, then the time, then the name order them.
"""

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from clusterscape.collect.hangs import debug_server, flight_recorder, nccl_ras, stacks
from clusterscape.errors import ClusterScapeError, SourceError
from clusterscape.model.hangs import CommunicatorLook, HangLook, HelperLook, ProcessLook, RankLook

MAX_FILES = 50_000
MAX_FILE_BYTES = 256 << 20
OBSERVATIONS = "clusterscape_processes"
"""Key of a file of observed processes, as ``track/hang_looks.py`` writes it; its value is the version."""
_AFTER_RANK = re.compile(r"rank[\s_\-=.]*0*(\d{1,7})(?!\d)", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_MAX_RANK = 10_000_000
MAX_HELPERS = 64
_RECORDER, _STACKS, _RAS, _PROCESSES = "recorder", "stacks", "RAS", "processes"


@dataclass(slots=True)
class _ReadFile:
    """One file that was read. ``rank`` is None until it is determined."""

    path: Path
    kind: str
    look: RankLook | None = None
    pid: int | None = None
    rank: int | None = None
    communicators: tuple[CommunicatorLook, ...] = ()
    observed: dict[str, Any] | None = None


def read_looks(paths: Sequence[Path], progress: Callable[[int, int], None] | None = None) -> list[HangLook]:
    """The looks in the given files and folders, the oldest first. Grows with the size of the files.

    Raises
    ------
    SourceError
        If there is no file, or none can be read.
    """
    files = list(_find_files(paths))
    if not files:
        raise SourceError(
            f"no files in {', '.join(map(str, paths[:3]))}", hint="Name dumps, or folders that contain them."
        )
    was_collecting = gc.isenabled()
    gc.disable()  # millions of new values and no cycles: full collections would take a third of the time
    try:
        read, notes, damaged = _read_all(files, progress)
    finally:
        if was_collecting:
            gc.enable()
    if not read:
        reason = notes[0] if notes else "no file has a known format"
        raise SourceError(
            f"nothing could be read: {reason}",
            hint="Supported: Flight Recorder (pickle, JSON), PyTorch's debug server, NCCL RAS, py-spy dump --json, faulthandler.",
        )
    unread_share = damaged / (damaged + len(read))
    return [replace(look, unread_share=unread_share) for look in _join(read, notes)]


def _find_files(paths: Sequence[Path]) -> Iterator[Path]:
    count = 0
    for path in paths:
        if not path.exists():
            raise SourceError(f"{path} does not exist", hint="Check the path.")
        inside = sorted(path.rglob("*"), key=_natural) if path.is_dir() else [path]
        for file in inside:
            if file.is_file() and not file.name.startswith("."):
                count += 1
                if count > MAX_FILES:
                    raise SourceError(f"more than {MAX_FILES:,} files", hint="Name the folder of the dumps.")
                yield file


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", str(path)) if part]


def _read_all(
    files: Sequence[Path], progress: Callable[[int, int], None] | None
) -> tuple[list[_ReadFile], list[str], int]:
    """What was read, notes, and the number of damaged files; a file of no known format is not damaged."""
    read, notes = [], []
    skipped = damaged = 0
    for number, path in enumerate(files, start=1):
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise SourceError(f"it is larger than {MAX_FILE_BYTES >> 20} MiB")
            files_in = _read_file(path, path.read_bytes())
            skipped += not files_in
            read += files_in
        except OSError as error:
            notes.append(f"Cannot read {path.name}: {error.strerror}.")
            damaged += 1
        except ClusterScapeError as error:
            notes.append(f"Cannot read {path.name}: {error.message}.")
            damaged += 1
        if progress is not None:
            progress(number, len(files))
    if skipped:
        notes.append(f"{skipped} of {len(files)} files have no known format.")
    return read, notes, damaged


def _read_file(path: Path, data: bytes) -> list[_ReadFile]:
    """What a file holds: of one rank, or of all; empty if the format is unknown."""
    is_page = not data.startswith(b"\x80") and debug_server.is_debug_page(data[:200_000].decode("utf-8", "replace"))
    if is_page:
        text = data.decode("utf-8", "replace")
        return [
            replace(file, rank=rank)
            for rank, content in debug_server.split_ranks(text)
            if (file := _read_one(path, content.encode())) is not None
        ]
    file = _read_one(path, data)
    return [] if file is None else [file]


def _read_one(path: Path, data: bytes) -> _ReadFile | None:
    """None if the format is unknown."""
    if not data:
        raise SourceError("it is empty", hint="Was the process killed before it wrote the file?")
    if flight_recorder.is_pickle(data):
        return _ReadFile(path, _RECORDER, flight_recorder.parse_dump(data))
    start = data[:64].lstrip()
    if start[:1] in (b"{", b"["):
        return _read_json(path, data)
    text = data.decode("utf-8", "replace")
    if nccl_ras.is_ras_text(text):
        return _ReadFile(path, _RAS, communicators=nccl_ras.parse_ras_text(text))
    if stacks.is_faulthandler_text(text):
        return _ReadFile(path, _STACKS, RankLook(-1, stacks=stacks.parse_faulthandler(text)))
    return None


def _read_json(path: Path, data: bytes) -> _ReadFile | None:
    try:
        document = msgspec.json.decode(nccl_ras.repair_json(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"it is not valid JSON ({error})", hint="Was it truncated?") from None
    if flight_recorder.is_dump(document):
        return _ReadFile(path, _RECORDER, flight_recorder.read_document(document))
    if nccl_ras.is_ras_document(document):
        return _ReadFile(path, _RAS, communicators=nccl_ras.read_ras_document(document))
    if stacks.is_pyspy_document(document):
        threads, pid = stacks.read_pyspy(document)
        return _ReadFile(path, _STACKS, RankLook(-1, stacks=threads), pid=pid)
    if isinstance(document, dict) and OBSERVATIONS in document:
        return _ReadFile(path, _PROCESSES, observed=document)
    return None


def _join(read: list[_ReadFile], notes: list[str]) -> list[HangLook]:
    """Sort the files into looks, and join what is known of each rank."""
    by_pid = _ranks_by_pid(read)
    for kind in (_RECORDER, _STACKS):
        notes += _assign_ranks([file for file in read if file.kind == kind], by_pid)
    looks: list[dict[str, list[_ReadFile]]] = []
    counts: dict[tuple[str, int | tuple[int, ...] | None], int] = {}
    for file in sorted(read, key=_order):
        if file.kind in (_RECORDER, _STACKS) and file.rank is None:
            continue
        # A rank's pickle and JSON of one moment are one source; a second pickle is a second look.
        key = (file.kind + (file.path.suffix if file.kind == _RECORDER else ""), _ranks_observed(file))
        place = counts.get(key, 0)
        counts[key] = place + 1
        while len(looks) <= place:
            looks.append({})
        looks[place].setdefault(file.kind, []).append(file)
    return [_look_of(files, notes) for files in looks]


def _ranks_observed(file: _ReadFile) -> int | tuple[int, ...] | None:
    """The rank of a file, or the ranks of observed processes: each machine of a job has a file of its own."""
    if file.observed is None:
        return file.rank
    return tuple(sorted(entry["rank"] for entry in _processes_of(file) if _as_int(entry.get("rank")) is not None))


def _order(file: _ReadFile) -> tuple[Any, ...]:
    try:
        changed = file.path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return (_natural(file.path.parent), changed, _natural(file.path))


def _ranks_by_pid(read: Sequence[_ReadFile]) -> dict[int, int]:
    """Rank by pid, from observed processes, else from the largest communicator; a pid of several hosts is left out."""
    ranks: dict[int, int] = {}
    for file in read:
        for process in _processes_of(file):
            if isinstance(process.get("pid"), int) and isinstance(process.get("rank"), int):
                ranks[process["pid"]] = process["rank"]
    communicators = [communicator for file in read for communicator in file.communicators]
    if ranks or not communicators:
        return ranks
    largest = max(communicators, key=lambda communicator: communicator.size or 0)
    pids = Counter(pid for _, pid in largest.processes.values())
    return {pid: rank for rank, (_, pid) in largest.processes.items() if pids[pid] == 1}


def _assign_ranks(files: Sequence[_ReadFile], by_pid: Mapping[int, int]) -> list[str]:
    """Set the rank of each file of one format; notes on those that have none."""
    notes = []
    for file in files:
        match = _AFTER_RANK.search(file.path.name)
        pid = file.pid or next((int(word) for word in _DIGITS.findall(file.path.name) if int(word) in by_pid), None)
        if file.rank is not None:
            continue
        if match:
            file.rank = int(match[1])
        elif pid is not None and pid in by_pid:
            file.rank = by_pid[pid]
    unknown = [file for file in files if file.rank is None]
    if unknown and len(unknown) == len(files):
        note = _assign_by_number(unknown)
        if note and unknown:
            notes.append(note)
    for file in files:
        if file.rank is None:
            notes.append(f"The rank of {file.path.name} is unknown: its name has no number.")
        elif file.look is not None:
            file.look = replace(file.look, rank=file.rank, files=(file.path.name,))
    return notes


def _assign_by_number(files: Sequence[_ReadFile]) -> str | None:
    """Ranks from the numbers in names, among files whose names differ only in numbers; a note if they are a guess."""
    alike: dict[tuple[Path, str], list[_ReadFile]] = {}
    for file in files:
        alike.setdefault((file.path.parent, _DIGITS.sub("#", file.path.name)), []).append(file)
    if len(alike) == len(files) > 1 and not _are_of_one_rank(files):  # a folder per rank, or names without numbers
        named = [f"{file.path.parent.name}/{file.path.name}" for file in files]
        return _assign_numbered(files, named)
    notes = [_assign_numbered(inside, [file.path.name for file in inside]) for inside in alike.values()]
    return next(filter(None, notes), None)


def _are_of_one_rank(files: Sequence[_ReadFile]) -> bool:
    """Whether dumps of one name in several folders are looks at one rank: they have calls of the same nanosecond."""
    times = [{call.created_ns for call in _look(file).calls if call.created_ns} for file in files]
    return len({file.path.name for file in files}) == 1 and bool(set.intersection(*times))


def _assign_numbered(files: Sequence[_ReadFile], names: Sequence[str]) -> str | None:
    """The last number that differs between all names, else two numbers together (node and local rank), else the order."""
    numbers = [[int(word) for word in _DIGITS.findall(name)] for name in names]
    width = min(map(len, numbers))
    columns = [[row[place] for row in numbers] for place in range(width)]
    if any(len(row) != width for row in numbers):
        columns = []
    differing = [column for column in columns if len(set(column)) == len(files) and max(column) < _MAX_RANK]
    small = [column for column in differing if max(column) < max(4 * len(files), 64)]  # a port or a pid is larger
    if small:
        for file, rank in zip(files, small[-1], strict=True):
            file.rank = rank
        return None
    varying = [column for column in columns if len(set(column)) > 1]
    members = max((len(about.members or ()) for file in files for about in _look(file).groups.values()), default=0)
    if varying and members and len(set(varying[-1])) == members < len(files):  # the other number is of the look
        for file, rank in zip(files, varying[-1], strict=True):
            file.rank = rank
        return None
    if len(varying) >= 2 and len(set(zip(*varying[-2:], strict=True))) == len(files):
        node, local = varying[-2:]
        per_node = max(local) - min(local) + 1
        nodes = sorted(set(node))
        for file, at, place in zip(files, node, local, strict=True):
            file.rank = nodes.index(at) * per_node + place - min(local)
        return f"Ranks are computed from two numbers of the file names, {per_node} for each value of the first."
    for rank, file in enumerate(sorted(files, key=lambda file: _natural(file.path))):
        file.rank = rank
    return "The file names contain no ranks: ranks are the order of the names."


def _look_of(files: Mapping[str, Sequence[_ReadFile]], notes: Sequence[str]) -> HangLook:
    ranks: dict[int, RankLook] = {}
    world_size = taken_ms = None
    is_partial = False
    # Pickles first: only they contain stacks.
    recorders = sorted(files.get(_RECORDER, ()), key=lambda file: not any(call.frames for call in _look(file).calls))
    for file in (*recorders, *files.get(_STACKS, ())):
        look = _look(file)
        ranks[look.rank] = ranks[look.rank].merge(look) if look.rank in ranks else look
    for file in files.get(_PROCESSES, ()):
        document = file.observed or {}
        world_size = _as_world_size(document.get("world_size")) or world_size
        taken_ms = _as_int(document.get("taken_ms")) or taken_ms
        for entry in _processes_of(file):
            rank = _as_int(entry.get("rank"))
            if rank is not None:
                look = RankLook(rank, process=_process_of(entry))
                ranks[rank] = ranks[rank].merge(look) if rank in ranks else look
        is_partial = is_partial or document.get("is_partial") is True
    communicators = tuple(communicator for file in files.get(_RAS, ()) for communicator in file.communicators)
    is_partial = is_partial and len(ranks) < (world_size or 0)
    return HangLook(dict(sorted(ranks.items())), communicators, world_size, taken_ms, tuple(notes), is_partial)


def _look(file: _ReadFile) -> RankLook:
    assert file.look is not None
    return file.look


def _processes_of(file: _ReadFile) -> list[dict[str, Any]]:
    """The observed processes of a file, if it is of such."""
    processes = (file.observed or {}).get("processes")
    return [entry for entry in processes if isinstance(entry, dict)] if isinstance(processes, list) else []


def _as_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _as_world_size(value: object) -> int | None:
    """Ranks are listed up to it, so larger numbers do not count as a world size."""
    size = _as_int(value)
    return size if size is not None and 0 < size <= flight_recorder.MAX_MEMBERS else None


def _process_of(entry: Mapping[str, Any]) -> ProcessLook:
    state, channel, waits_on = entry.get("state"), entry.get("wait_channel"), entry.get("waits_on")
    wanted_ms = entry.get("wanted_ms")
    return ProcessLook(
        pid=_as_int(entry.get("pid")),
        state=state if isinstance(state, str) else None,
        wait_channel=channel[:100] if isinstance(channel, str) else None,
        waits_on=waits_on[:500] if isinstance(waits_on, str) else None,
        cpu_ticks=_as_int(entry.get("cpu_ticks")),
        is_thread_in_socket=entry.get("is_thread_in_socket") is True,
        io_bytes=_as_int(entry.get("io_bytes")),
        switches=_as_int(entry.get("switches")),
        wanted_ms=wanted_ms if isinstance(wanted_ms, int | float) and not isinstance(wanted_ms, bool) else None,
        helpers=_helpers_of(entry.get("helpers")),
        exit_code=_as_int(entry.get("exit_code")),
        exit_signal=_as_int(entry.get("exit_signal")),
        ran_out_of_memory=entry.get("ran_out_of_memory") is True,
    )


def _helpers_of(entries: object) -> tuple[HelperLook, ...]:
    helpers = []
    for entry in entries[:MAX_HELPERS] if isinstance(entries, list) else ():
        pid = _as_int(entry.get("pid")) if isinstance(entry, dict) else None
        if pid is None:
            continue
        name, text = entry.get("name"), entry.get("stack")
        threads = stacks.parse_faulthandler(text) if isinstance(text, str) else ()
        helpers.append(
            HelperLook(
                pid,
                name[:100] if isinstance(name, str) else None,
                _process_of({**entry, "helpers": None}),
                threads[0].frames if threads else (),
            )
        )
    return tuple(helpers)
