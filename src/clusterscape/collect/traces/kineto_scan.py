"""Large Kineto files as columns without an object per event: the same spans as ``kineto.py`` and ``kineto_spans.py`` give.

None where a file is not as profilers write it; those two then read it and say what is wrong. Importing this imports numba.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.collect.traces import kineto_kernels as kernels
from clusterscape.collect.traces.json_kernels import HASH, ODD, fill_slots, skip_space, skip_value
from clusterscape.collect.traces.kineto import MOST_US, Document, EventArguments
from clusterscape.collect.traces.kineto_file_kernels import find_members, keep_rows, mark_telling
from clusterscape.collect.traces.kineto_flops import FORMULAS, add_flops, estimate_flops
from clusterscape.collect.traces.kineto_memory import MEMORY_SCHEMA, choose_device
from clusterscape.collect.traces.kineto_memory_kernels import MARK_COLUMNS, TIME, read_marks
from clusterscape.collect.traces.kineto_spans import (
    CLASSES,
    DEVICE_CATEGORIES,
    NO_ARGUMENTS,
    SPEAKING_CATEGORIES,
    Built,
    classify,
    describe,
    describe_collectives,
    is_speaking,
    note_negative,
    place_floats,
    place_wholes,
    to_whole,
)
from clusterscape.model.spans import SPAN_CLASS, SpanClass, make_spans

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Token = int | float | str | None

FIRST_SLOTS = 1 << 12
FACTS = (b"distributedInfo", b"deviceProperties", b"baseTimeNanoseconds")
_DOCUMENT = msgspec.json.Decoder(Document)
_ARGUMENTS = msgspec.json.Decoder(EventArguments)
_TOKEN: msgspec.json.Decoder[Token] = msgspec.json.Decoder(int | float | str | None)
_CLASS_CODES = {kind: at for at, kind in enumerate(SpanClass)}


@dataclass(frozen=True, slots=True)
class _Events:
    """Columns of ``scan_events``, a row of these arrays each; ``tokens`` are the strings and numbers that codes stand for,
    ``memory`` places of marks.
    """

    whole: Ints
    real: Floats
    hard: Ints
    tokens: Sequence[Token]
    memory: Ints


@dataclass(frozen=True, slots=True)
class Scanned:
    """The document (its events left out), what ``build_spans`` makes of it, and what ``read_memory`` does."""

    document: Document
    built: Built
    memory: pl.DataFrame | None


def scan_kineto(data: bytes) -> Scanned | None:
    """What is in a file; None: it is not to be read so."""
    try:
        found = _scan(data)
        if found is None:
            return None
        document, events = found
        _read_hard(events, data)
        if _is_beyond_time(events):
            return None
        base_ns = document.base_ns or 0
        built = _build(events, base_ns, data)
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError):
        return None
    return Scanned(document, built, _read_memory(events, base_ns, data))


def _is_beyond_time(events: _Events) -> bool:
    """Whether a time is one that no clock told; the decoder counts such events and leaves them out."""
    starts = events.whole[kernels.START]
    if ((starts > MOST_US) | ((starts < -MOST_US) & (starts != kernels.NOTHING))).any():
        return True
    times = events.real[[kernels.START_REAL, kernels.DURATION]]
    return bool((np.abs(times, out=times) > MOST_US).any())


def _scan(data: bytes) -> tuple[Document, _Events] | None:
    raw = np.frombuffer(data, np.uint8)
    at = skip_space(raw, 0)
    members = np.zeros((0, 4), np.int64)
    is_document = data[at : at + 1] == b"{"
    if is_document:
        at, members, has_events = find_members(raw, at + 1, True)
        if not has_events:
            return None
    if data[at : at + 1] != b"[":
        return None
    at, events = _scan_events(raw, data, at + 1)
    if is_document and at != ODD:
        at, more, has_more = find_members(raw, at, False)
        members = np.concatenate([members, more])
        if has_more:
            return None
    if at == ODD or skip_space(raw, at) < raw.size:
        return None
    return _facts_of(data, members), events


def _scan_events(raw: NDArray[np.uint8], data: bytes, at: int) -> tuple[int, _Events]:
    """The place behind the list of events whose first one is here, or ``ODD``; and these."""
    most = (raw.size - at) // kernels.LEAST_EVENT_BYTES + 2
    # More than are needed; what is not written to takes no memory.
    whole, real = np.empty((kernels.WHOLE_COLUMNS, most), np.int64), np.empty((kernels.REAL_COLUMNS, most))
    hard = np.empty(((raw.size - at) // kernels.LEAST_HARD_BYTES + kernels.HARD_KINDS, 3), np.int64)
    table = np.empty((kernels.TOKENS_PER_EVENT * most, HASH + 1), np.int64)
    memory = np.empty((most, 2), np.int64)
    state, found = np.zeros(kernels.STATE, np.int64), np.zeros(kernels.FOUND, np.int64)
    state[kernels.AT] = at
    slots = np.full(FIRST_SLOTS, -1, np.int64)
    while (
        outcome := kernels.scan_events(raw, state, whole, real, hard, slots, table, memory, found)
    ) == kernels.IS_FULL:
        slots = np.full(2 * slots.size, -1, np.int64)
        fill_slots(slots, table, state[kernels.TOKENS])
    at, rows, hards, tokens, marks = state.tolist()
    texts = [] if outcome == ODD else [_TOKEN.decode(data[begin:end]) for begin, end, _ in table[:tokens].tolist()]
    events = _Events(whole[:, :rows], real[:, :rows], hard[:hards], texts, memory[:marks])
    return (ODD if outcome == ODD else at), events


def _facts_of(data: bytes, members: Ints) -> Document:
    """The document without its events."""
    values = {data[name:name_end]: data[value:end] for name, name_end, value, end in members.tolist()}
    parts = [b'"%s":%s' % (name, values[name]) for name in FACTS if name in values]
    return _DOCUMENT.decode(b"{%s}" % b",".join(parts))


def _read_hard(events: _Events, data: bytes) -> None:
    """Numbers written as strings, or with more digits than a float has: as Python reads them, put into the columns."""
    whole, real = events.whole, events.real
    raw = np.frombuffer(data, np.uint8)
    for row, what, begin in events.hard.tolist():
        value = _TOKEN.decode(data[begin : skip_value(raw, begin)])
        if what == kernels.HARD_START:
            whole[kernels.START, row] = value if isinstance(value, int) else kernels.NOTHING
            real[kernels.START_REAL, row] = value
        elif what == kernels.HARD_DURATION:
            real[kernels.DURATION, row] = value
        elif what == kernels.HARD_FLOPS:
            real[kernels.FLOPS, row] = float(value or 0)
        elif (number := to_whole(value)) is not None:
            whole[kernels.CORRELATION if what == kernels.HARD_CORRELATION else kernels.SIZE, row] = number


def _read_memory(events: _Events, base_ns: int, data: bytes) -> pl.DataFrame | None:
    if not events.memory.size:
        return None
    found = np.empty((len(events.memory), MARK_COLUMNS), np.int64)
    count = read_marks(np.frombuffer(data, np.uint8), events.memory, found)
    found[:count, TIME] += base_ns
    return choose_device(pl.DataFrame(found[:count], schema=dict(MEMORY_SCHEMA), orient="row"))


def _build(events: _Events, base_ns: int, data: bytes) -> Built:
    """As ``build_spans``: few strings are shared by many spans, so what they mean is found once for each."""
    tokens = events.tokens
    kinds = np.array([_CLASS_CODES[CLASSES[each]] if each in CLASSES else -1 for each in tokens] or [-1], np.int8)
    is_known = kinds[events.whole[kernels.CATEGORY]] >= 0
    is_kept = is_known & (events.real[kernels.DURATION] >= 0)
    count = keep_rows(events.whole, events.real, is_kept)
    whole, real = events.whole[:, :count], events.real[:, :count]
    notes = note_negative(int(np.count_nonzero(is_known)) - count)
    category = whole[kernels.CATEGORY]
    name, names = _gather(whole[kernels.NAME], lambda code: str(None if code < 0 else tokens[code]))
    classes = kinds[category]
    for code, token in enumerate(tokens):
        if token in SPEAKING_CATEGORIES and (mine := np.flatnonzero(category == code)).size:
            classes[mine] = _classify(str(token), name[mine], names)
    on_device = np.array([each in DEVICE_CATEGORIES for each in tokens] or [False])[category]
    # Codes of threads are −1 or more: twice one more than that, and the device's.
    lane, lanes = _gather(
        2 * (whole[kernels.THREAD] + 1) + on_device,
        lambda code: f"{'stream' if code % 2 else 'thread'} {tokens[code // 2 - 1] if code > 1 else None}",
    )
    starts = _starts(whole, real, base_ns)
    spans = make_spans(
        {
            "lane": pl.Series(lanes, dtype=pl.Categorical()).gather(lane),
            "is_device": pl.Series(on_device),
            "span_class": pl.Series(list(SpanClass), dtype=SPAN_CLASS).gather(classes),
            "name": pl.Series(names, dtype=pl.Categorical()).gather(name),
            "start_ns": starts,
            "end_ns": starts + (pl.Series(real[kernels.DURATION]) * 1000).round().cast(pl.Int64),
            "bytes": _wholes(whole[kernels.SIZE]),
            "flops": pl.Series(real[kernels.FLOPS], nan_to_null=True),
            "correlation": _wholes(whole[kernels.CORRELATION]),
        },
        count,
    )
    speaks = np.array([is_speaking(each) for each in names] or [False])
    wanted = (classes == _CLASS_CODES[SpanClass.COMMUNICATION]) | speaks[name]
    silent = [describe(0, NO_ARGUMENTS, text)[1:] for text in names]
    facts = [
        describe(place, own, names[code]) if own else (place, *silent[code])
        for place, code, own in _with_arguments(wanted, whole, name, data)
    ]
    products = np.array([each in FORMULAS for each in names] or [False])[name]
    estimated = [
        (place, flops)
        for place, code, own in _with_arguments(products, whole, name, data)
        if own and (flops := estimate_flops(names[code], own)) is not None
    ]
    return Built(*add_flops(describe_collectives(spans, facts), estimated), notes)


def _with_arguments(
    is_wanted: NDArray[np.bool_], whole: Ints, name: Ints, data: bytes
) -> Iterator[tuple[int, int, EventArguments | None]]:
    """Of the spans that are wanted: row, code of the name, and what is read of their arguments, where they tell anything."""
    wanted = np.flatnonzero(is_wanted)
    begins, ends = whole[kernels.ARGUMENTS][wanted], whole[kernels.ARGUMENTS_END][wanted]
    is_telling = np.empty(wanted.size, np.bool_)
    mark_telling(np.frombuffer(data, np.uint8), begins, is_telling)
    columns = wanted, name[wanted], begins, ends, is_telling
    for place, code, begin, end, tells in zip(*(each.tolist() for each in columns), strict=True):
        yield place, code, _ARGUMENTS.decode(data[begin:end]) if tells else None


def _gather(codes: Ints, text: Callable[[int], str]) -> tuple[Ints, list[str]]:
    """For each code its place among the different texts, and these."""
    low = int(codes.min()) if codes.size else 0
    is_used = np.zeros(int(codes.max()) - low + 1 if codes.size else 0, np.bool_)
    is_used[codes - low] = True
    used = np.flatnonzero(is_used)
    places: dict[str, int] = {}
    table = np.zeros(is_used.size, np.int64)
    # Different tokens may be one text: 7 and "7".
    table[used] = [places.setdefault(text(code), len(places)) for code in (used + low).tolist()]
    return table[codes - low], list(places)


def _classify(category: str, name: Ints, names: Sequence[str]) -> NDArray[np.int8]:
    """Classes of spans of one category, by their names."""
    found = np.zeros(len(names), np.int8)
    for place in np.unique(name).tolist():
        found[place] = _CLASS_CODES[classify(category, names[place])]
    return found[name]


def _starts(whole: Ints, real: Floats, base_ns: int) -> pl.Series:
    starts = whole[kernels.START]
    if (starts != kernels.NOTHING).all():
        return place_wholes(pl.Series(starts), base_ns)
    return place_floats(pl.Series(real[kernels.START_REAL]), base_ns)


def _wholes(values: Ints) -> pl.Series:
    return pl.Series(values).set(pl.Series(values == kernels.NOTHING), None)
