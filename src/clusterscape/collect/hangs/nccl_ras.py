"""Reads answers of NCCL RAS: JSON, also the invalid one of NCCL 2.28, and text, which lists only ranks that differ."""

import re
from typing import Any

import msgspec

from clusterscape.errors import SourceError
from clusterscape.model.hangs import CommunicatorLook

MAX_SIZE = 1 << 20
"""The largest communicator whose ranks are listed."""
_LOST_COMMA = re.compile(rb'([\d"}])(\s*\n\s*"status")')  # NCCL 2.28.9 forgets it in `missing_ranks`
_HEAD = re.compile(r"^#\d+-\d+ \((?:0x)?([0-9a-f]+)\) (INCOMPLETE|MISMATCH|ERROR)")
_OPERATION = re.compile(r"^ {2}Communicator ranks have different (\w+) operation counts")
_SEVERAL = re.compile(r"^ {2}(\d{1,18}) ranks have (?:launched up to operation (\d{1,18})|not launched any operations)")
_ONE = re.compile(r"^ {2}Rank (\d{1,18}) has (?:launched up to operation (\d{1,18})|not launched any operations)")
_RANK = re.compile(r"^ {2}Rank (\d{1,18})(?: reported (.+?))? -- ")
_PROCESS = re.compile(r"managed by process (\d{1,18}) on node (\S+)")
_DEAD = re.compile(r"^ {2}Process (\d{1,18}) on node (\S+)")
_TABLE_ROW = re.compile(r"^ *\d+ +(\d{1,18}) +\d+ +[\d-]+ +(\d{1,18}) +\d+ +\w+ +\w+")


def is_ras_document(document: object) -> bool:
    """Whether a JSON document is an answer of RAS."""
    return isinstance(document, dict) and isinstance(document.get("communicators"), list)


def repair_json(data: bytes) -> bytes:
    """Valid JSON of the answer of NCCL 2.28.9."""
    return _LOST_COMMA.sub(rb"\1,\2", data)


def is_ras_text(text: str) -> bool:
    """Whether a text is an answer of RAS."""
    return "Communicators..." in text[:20_000] or "Job summary\n===========" in text[:20_000]


def parse_ras(data: bytes) -> tuple[CommunicatorLook, ...]:
    """The communicators of an answer, as JSON or text. Raises SourceError."""
    if not data.lstrip().startswith(b"{"):
        return parse_ras_text(data.decode("utf-8", "replace"))
    try:
        document = msgspec.json.decode(repair_json(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"it is not valid JSON: {error}", hint="Was it truncated?") from None
    return read_ras_document(document)


def read_ras_document(document: Any) -> tuple[CommunicatorLook, ...]:
    """The communicators of a parsed answer. Raises SourceError."""
    if not is_ras_document(document):
        raise SourceError("it is not an answer of NCCL RAS", hint="An answer has `communicators`.")
    return tuple(_communicator_of(entry) for entry in document["communicators"] if isinstance(entry, dict))


def _communicator_of(entry: dict[str, Any]) -> CommunicatorLook:
    counts: dict[int, dict[str, int]] = {}
    processes: dict[int, tuple[str, int]] = {}
    errors: dict[int, str] = {}
    unresponsive: list[int] = []
    dead: list[int] = []
    for about in _dicts(entry.get("ranks")):
        rank = about.get("rank")
        if not isinstance(rank, int):
            continue
        launched = about.get("collective_counts")
        counts[rank] = {
            str(name): count
            for name, count in (launched.items() if isinstance(launched, dict) else ())
            if isinstance(count, int)
        }
        _note_process(about, rank, processes)
        status = about.get("status")
        error = status.get("async_error") if isinstance(status, dict) else None
        if isinstance(error, int) and error not in (0, 7):  # 7 is ncclInProgress
            errors[rank] = f"asynchronous error {error}"
    for about in _dicts(entry.get("missing_ranks")):
        rank, status = about.get("rank"), about.get("status")
        if isinstance(rank, int):
            _note_process(about, rank, processes)
            is_dead = isinstance(status, dict) and status.get("considered_dead") is True
            (dead if is_dead else unresponsive).append(rank)
    size = entry.get("size")
    return CommunicatorLook(
        name=str(entry.get("hash", "?"))[:64].removeprefix("0x"),
        size=size if isinstance(size, int) else None,
        counts=counts,
        processes=processes,
        unresponsive=tuple(unresponsive),
        dead=tuple(dead),
        errors=errors,
    )


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _note_process(about: dict[str, Any], rank: int, processes: dict[int, tuple[str, int]]) -> None:
    if isinstance(about.get("pid"), int):
        processes[rank] = (str(about.get("host", ""))[:255], about["pid"])


class _Section:
    """One communicator while its text is read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[int, dict[str, int]] = {}
        self.processes: dict[int, tuple[str, int]] = {}
        self.missing: list[int] = []
        self.errors: dict[int, str] = {}
        self.majority: dict[str, int] = {}
        self.size = 0


def parse_ras_text(text: str) -> tuple[CommunicatorLook, ...]:
    """The communicators with errors or warnings. Ranks that the text does not list have the most frequent count."""
    if not is_ras_text(text):
        raise SourceError("it is not an answer of NCCL RAS", hint="Record one with `ncclras -v`.")
    sections: dict[str, _Section] = {}
    sizes = [int(row[2]) for line in text.splitlines() if (row := _TABLE_ROW.match(line))]
    dead_processes: set[tuple[str, int]] = set()
    section: _Section | None = None
    part, operation, count = "", "", None
    for line in text.splitlines():
        if head := _HEAD.match(line):
            section = sections.setdefault(head[1], _Section(head[1]))
            part, operation, count = head[2], "", None
        elif line.startswith(("DEAD", "INCOMPLETE")):
            section, part = None, line.split()[0]
        elif section is None:
            if process := _DEAD.match(line):
                dead_processes.add((process[2], int(process[1])))
        elif match := _OPERATION.match(line):
            operation, count = match[1], None
        elif match := _SEVERAL.match(line):
            count = int(match[2] or 0)
            ranks = int(match[1])
            if ranks > section.size:  # the most frequent comes first
                section.size = ranks
                section.majority[operation] = count
            section.majority.setdefault(operation, count)
        elif match := _ONE.match(line):
            section.counts.setdefault(int(match[1]), {})[operation] = int(match[2] or 0)
            _note_place(line, int(match[1]), section)
        elif match := _RANK.match(line):
            rank = int(match[1])
            _note_place(line, rank, section)
            if part == "INCOMPLETE":
                section.missing.append(rank)
            elif part == "ERROR":
                section.errors[rank] = match[2] or "error"
            elif operation and count is not None:
                section.counts.setdefault(rank, {})[operation] = count
    return tuple(_close(section, sizes, dead_processes) for section in sections.values())


def _note_place(line: str, rank: int, section: _Section) -> None:
    if process := _PROCESS.search(line):
        section.processes[rank] = (process[2], int(process[1]))


def _close(section: _Section, sizes: list[int], dead_processes: set[tuple[str, int]]) -> CommunicatorLook:
    """Fill in the ranks that have the count of most. Communicators are grouped by size; of several sizes the least that fits."""
    largest = max([*section.counts, *section.missing, *section.errors, section.size - 1], default=-1)
    fitting = [size for size in sizes if size > largest]
    size = min(fitting, default=largest + 1)
    size = min(size, MAX_SIZE)
    dead = [rank for rank in section.missing if section.processes.get(rank) in dead_processes]
    present = [rank for rank in range(size) if rank not in section.missing]
    operations = {name for counts in section.counts.values() for name in counts} | set(section.majority)
    counts = {
        rank: {name: section.counts.get(rank, {}).get(name, section.majority.get(name, 0)) for name in operations}
        for rank in present
    }
    return CommunicatorLook(
        name=section.name,
        size=size,
        counts=counts,
        processes=section.processes,
        unresponsive=tuple(rank for rank in section.missing if rank not in dead),
        dead=tuple(dead),
        errors=section.errors,
        is_of_text=True,
    )
