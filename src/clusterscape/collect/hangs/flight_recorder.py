"""Reads a dump of PyTorch's Flight Recorder: pickle or JSON, of NCCL, gloo and other backends, versions 1 and 2.

Gloo never reports that a collective has started or completed: what is retired counts as done. NCCL retires what timed out, too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from clusterscape.errors import SourceError
from clusterscape.model.hangs import CollectiveCall, GroupProgress, RankLook, StackFrame

KEPT_DONE = 64
"""Completed calls kept of each rank, the newest; all pending ones are kept up to ``KEPT_PENDING``."""
KEPT_PENDING = 4_096
MAX_FRAMES = 64
MAX_MEMBERS = 1 << 20
_P2P = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")
_NUMBERS = re.compile(r"\d{1,7}")
_COMPLETED = "completed"


def is_pickle(data: bytes) -> bool:
    """Whether it starts like a pickle of protocol 2 or newer, which torch writes."""
    return data[:1] == b"\x80"


def parse_dump(data: bytes) -> RankLook:
    """The look of one rank, whose number the dump does not contain: it is −1. Raises SourceError."""
    if is_pickle(data):
        from clusterscape.collect.hangs.safe_pickle import read_plain_pickle

        return read_document(read_plain_pickle(data))
    try:
        return read_document(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"it is not valid JSON: {error}", hint="Was it truncated?") from None


def is_dump(document: object) -> bool:
    """Whether a JSON document is a dump."""
    return isinstance(document, dict) and isinstance(document.get("entries"), list) and "version" in document


def read_document(document: object) -> RankLook:
    """The look of one rank from the parsed dump. Raises SourceError if it is not a dump."""
    if isinstance(document, list):  # version 1 was the list of entries
        document = {"entries": document}
    entries = document.get("entries") if isinstance(document, dict) else None
    if not isinstance(entries, (list, tuple)) or not isinstance(document, dict):
        raise SourceError("it is not a Flight Recorder dump", hint="A dump has `entries` and `version`.")
    entries = [entry for entry in entries if isinstance(entry, dict)]
    backend = next((_text(entry.get("profiling_name")).partition(":")[0] for entry in reversed(entries)), None)
    is_gloo = backend == "gloo"
    calls = [_call_of(entry, is_gloo) for entry in _newest(entries, is_gloo)]
    calls.sort(key=lambda call: call.order)
    return RankLook(
        rank=-1,
        backend=backend or None,
        groups=_read_groups(document, entries, calls),
        calls=tuple(calls),
        has_recorder=True,
    )


def _newest(entries: Sequence[Mapping[str, Any]], is_gloo: bool) -> Iterable[Mapping[str, Any]]:
    """The entries to keep, newest first: thousands of completed ones tell nothing about a hang."""
    done = pending = 0
    for entry in reversed(entries):
        if _is_done(entry, is_gloo):
            done += 1
            if done > KEPT_DONE:
                continue
        else:
            pending += 1
            if pending > KEPT_PENDING:
                continue
        yield entry


def _is_done(entry: Mapping[str, Any], is_gloo: bool) -> bool:
    return entry.get("state") == _COMPLETED or (is_gloo and entry.get("retired") is True)


def _call_of(entry: Mapping[str, Any], is_gloo: bool) -> CollectiveCall:
    name = _text(entry.get("profiling_name")).partition(":")[2] or _text(entry.get("profiling_name")) or "unknown"
    is_p2p = entry.get("is_p2p") is True or _P2P.fullmatch(name) is not None
    sequence = _number(entry.get("p2p_seq_id")) if is_p2p else None
    if sequence is None:
        sequence = _number(entry.get("collective_seq_id", entry.get("seq_id")))
    types = entry.get("input_dtypes")
    return CollectiveCall(
        group=_group_of(entry),
        sequence=sequence or 0,
        operation=name[:100],
        is_p2p=is_p2p,
        input_sizes=_sizes(entry.get("input_sizes")),
        output_sizes=_sizes(entry.get("output_sizes")),
        types=tuple(_text(word)[:32] for word in types[:64]) if isinstance(types, (list, tuple)) else (),
        state=_text(entry.get("state"))[:32] or "scheduled",
        is_done=_is_done(entry, is_gloo),
        is_timed_out=not is_gloo and entry.get("retired") is True and entry.get("state") != _COMPLETED,
        order=_number(entry.get("record_id", entry.get("id"))) or 0,
        created_ns=_number(entry.get("time_created_ns")) or None,
        frames=_frames(entry.get("frames")),
    )


def _group_of(entry: Mapping[str, Any]) -> str:
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and group and _text(group[0]):
        return _text(group[0])[:200]
    number = entry.get("pg_id", entry.get("pg_name", 0))
    return str(number)[:200] if isinstance(number, (int, str)) else "0"


def _read_groups(
    document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], calls: Sequence[CollectiveCall]
) -> dict[str, GroupProgress]:
    """Progress by group: what the dump reports, else what its entries show."""
    names: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    numbers = set()
    for entry in entries:
        number = entry.get("pg_id")
        if not isinstance(number, (int, str)) or number in numbers:
            continue
        numbers.add(number)
        group = entry.get("process_group")
        if isinstance(group, (list, tuple)) and len(group) > 1:
            name = _group_of(entry)
            names[str(number)[:32]] = name
            descriptions[name] = _text(group[1])[:200]
    members = _read_members(document.get("pg_config"), descriptions)
    groups: dict[str, GroupProgress] = {}
    status = document.get("pg_status")
    for number, progress in status.items() if isinstance(status, dict) else ():
        if isinstance(progress, dict):
            name = names.get(str(number), str(number)[:200])
            groups[name] = GroupProgress(
                enqueued=_reached(progress.get("last_enqueued_collective")),
                completed=_reached(progress.get("last_completed_collective")),
                members=members.get(name),
                description=_described(descriptions.get(name)),
            )
    for call in calls:
        before = groups.get(call.group, GroupProgress(None, None, members.get(call.group)))
        if call.is_p2p:
            groups.setdefault(call.group, before)
            continue
        groups[call.group] = GroupProgress(
            enqueued=max(before.enqueued or 0, call.sequence),
            completed=max(before.completed or 0, call.sequence) if call.is_done else before.completed,
            members=before.members,
            description=before.description or _described(descriptions.get(call.group)),
        )
    return groups


def _read_members(config: object, descriptions: dict[str, str]) -> dict[str, tuple[int, ...]]:
    members: dict[str, tuple[int, ...]] = {}
    for name, about in config.items() if isinstance(config, dict) else ():
        if not isinstance(about, dict):
            continue
        ranks = about.get("ranks")
        if isinstance(ranks, str):
            numbers = _parse_ranks(ranks[: 8 * MAX_MEMBERS])
        else:
            numbers = tuple(rank for rank in ranks or () if isinstance(rank, int)) if isinstance(ranks, list) else ()
        if numbers:
            members[str(name)[:200]] = numbers
        if _text(about.get("desc")):
            descriptions.setdefault(str(name)[:200], _text(about.get("desc"))[:200])
    return members


@lru_cache(maxsize=1024)
def _parse_ranks(text: str) -> tuple[int, ...]:
    """All dumps list the members of the world: parsed once."""
    return tuple(int(word) for word in _NUMBERS.findall(text))


def _described(text: str | None) -> str | None:
    return text if text and text != "undefined" else None


def _reached(value: object) -> int | None:
    """A sequence number; the recorder writes −1 where there was none."""
    number = _number(value)
    return None if number is None or number < 0 else number


def _number(value: object) -> int | None:
    if isinstance(value, str) and len(value) < 20:
        try:
            return int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _sizes(value: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(
        tuple(size for size in shape[:16] if isinstance(size, int))
        for shape in value[:64]
        if isinstance(shape, (list, tuple))
    )


def _frames(value: object) -> tuple[StackFrame, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(
        StackFrame(_text(frame.get("name"))[:200], _text(frame.get("filename"))[:1000], _number(frame.get("line")))
        for frame in value[:MAX_FRAMES]
        if isinstance(frame, dict)
    )
