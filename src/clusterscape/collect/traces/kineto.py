"""Decodes PyTorch profiler (Kineto) files into typed events. A truncated file is read up to the truncation.

msgspec decodes a block of events at a time, checks every type and keeps only the fields that spans need. ``kineto_spans.py``
interprets the events.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from operator import or_
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import polars as pl

from clusterscape.collect.traces.files import Content
from clusterscape.errors import SourceError

Number = int | float | str | None

MAX_US = 4 * 10**15
"""In the year 2096. Larger times are not real, and as nanoseconds they would soon overflow 64 bits."""
_WITHIN = msgspec.Meta(ge=-MAX_US, le=MAX_US)
Microseconds = Annotated[int, _WITHIN] | Annotated[float, _WITHIN]
BaseNanoseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_US * 1000)]
_EMPTY = msgspec.Raw()


class EventArguments(msgspec.Struct, gc=False):
    """The fields of an event's ``args`` that are used; profilers write many more."""

    correlation: Number = None
    bytes: Number = None
    flops: Number = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    group: Number = msgspec.field(default=None, name="Process Group Name")
    input_elements: Number = msgspec.field(default=None, name="In msg nelems")
    data_type: str | None = msgspec.field(default=None, name="dtype")
    sequence: Number = msgspec.field(default=None, name="Seq")
    source_rank: Number = msgspec.field(default=None, name="Src Rank")
    target_rank: Number = msgspec.field(default=None, name="Dst Rank")
    input_shapes: msgspec.Raw = msgspec.field(default=_EMPTY, name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=_EMPTY, name="Input type")
    settings: msgspec.Raw = msgspec.field(default=_EMPTY, name="Concrete Inputs")


class CompleteEvent(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """An event with a start and a duration. Times are microseconds since ``baseTimeNanoseconds``, if the file has one."""

    cat: str | None = None
    name: str | int | None = None
    tid: Number = None
    ts: Microseconds | None = None
    dur: Microseconds | None = None
    args: EventArguments | None = None


class AllocationArguments(msgspec.Struct, gc=False):
    """The arguments of an allocation or release of memory. Older profilers wrote only the change, without the total."""

    total: Number = msgspec.field(default=None, name="Total Allocated")
    device_type: Number = msgspec.field(default=None, name="Device Type")
    device: Number = msgspec.field(default=None, name="Device Id")


class InstantEvent(msgspec.Struct, gc=False, tag_field="ph", tag="i"):
    """An instant, such as a memory allocation. Its time is kept as text: a float would lose digits."""

    name: msgspec.Raw = _EMPTY
    ts: msgspec.Raw = _EMPTY
    args: AllocationArguments | None = None


class OtherEvent(msgspec.Struct, gc=False):
    """An event that is not used: a flow, a counter, metadata. None of its fields are kept."""


OTHER_PHASES = "BEISTFsftbneCMPNODVvRcp(),"
"""All phases of the Trace Event Format except X and i."""

if TYPE_CHECKING:
    Event = CompleteEvent | InstantEvent | OtherEvent
else:
    # msgspec distinguishes events by phase if each phase has its own type.
    _OTHER_TYPES = [
        msgspec.defstruct(f"OtherEvent{ord(phase)}", [], bases=(OtherEvent,), tag_field="ph", tag=phase, gc=False)
        for phase in OTHER_PHASES
    ]
    Event = reduce(or_, [CompleteEvent, InstantEvent, *_OTHER_TYPES])


class _Phase(msgspec.Struct):
    ph: str = ""


class GroupInfo(msgspec.Struct):
    """A process group as PyTorch describes it."""

    pg_name: Number = None
    pg_desc: str | None = None
    ranks: list[int] = []


class DistributedInfo(msgspec.Struct):
    """The rank's position in the run."""

    backend: str | None = None
    rank: Number = None
    world_size: Number = None
    pg_config: list[GroupInfo] = []


class KinetoDevice(msgspec.Struct):
    """A GPU of the machine."""

    name: str | None = None


class KinetoMetadata(msgspec.Struct):
    """The fields of a file other than its events."""

    distributed: DistributedInfo | None = msgspec.field(default=None, name="distributedInfo")
    devices: list[KinetoDevice] = msgspec.field(default_factory=list, name="deviceProperties")
    base_ns: BaseNanoseconds | None = msgspec.field(default=None, name="baseTimeNanoseconds")


BLOCK_BYTES = 1 << 19
"""Decoded at a time: the objects of a block stay in the CPU cache, which halves the time to read a file."""
MAX_LISTS = 8  # places where the name of the event list may occur
MAX_BRACES = 64  # closing braces within one event
_LIST = re.compile(rb"\s*\[")
_NAMED_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN_EVENTS = re.compile(rb"\}\s*,\s*\{")
_NOT_NUMBERS = re.compile(rb"([:\[,]\s*)[-+]?(?:NaN|Infinity)(?=\s*[,\]}])")
_END_OF_OBJECT = re.compile(rb"\}(?:\s*,)?")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_PHASE = msgspec.json.Decoder(_Phase)
_PHASES = frozenset("Xi" + OTHER_PHASES)
_METADATA = msgspec.json.Decoder(KinetoMetadata)
_RAW_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_METADATA = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
"""Errors for text that is not JSON, not of the types above, or not UTF-8."""
RawMetadata = dict[str, msgspec.Raw]
_DAMAGED = "its JSON is truncated or damaged"
_NO_EVENT = "no event can be read from it"


class KinetoFile:
    """One file. Its metadata and notes are complete once ``iter_events`` is exhausted.

    Raises ``SourceError`` if the file has no list of events.
    """

    def __init__(self, content: Content) -> None:
        self.metadata = KinetoMetadata()
        self._not_numbers = 0
        self._is_utf8 = True
        self._data = content.data
        self._at, self._raw_metadata, self._before_end = _find_list(content.data)
        self._event_count = 0
        self._unexpected = 0
        self._cut = content.cut
        self._metadata_notes: list[str] = []
        self._unread_bytes = 0

    @property
    def unread_share(self) -> float:
        """The share of the file that could not be read: behind damage, and events of unexpected types."""
        events = self._event_count + self._unexpected
        unexpected = self._unexpected / events if events else 0.0
        return 1 - (1 - self._unread_bytes / max(len(self._data), 1)) * (1 - unexpected)

    @property
    def is_complete(self) -> bool:
        """Whether the file could be read to its end."""
        return self._cut is None

    @property
    def notes(self) -> tuple[str, ...]:
        """The problems of the file, as sentences."""
        notes = [] if self._cut is None else [self._cut, f"only the {self._event_count:,} events before that are used"]
        if self._not_numbers:
            notes.append(f"{self._not_numbers:,} values are not numbers (NaN or Infinity) and count as missing")
        if not self._is_utf8:
            notes.append("it is not UTF-8: unknown characters of names are replaced")
        if self._unexpected:
            notes.append(f"{self._unexpected} events with fields of unexpected types were skipped")
        return (*notes, *self._metadata_notes)

    def iter_events(self) -> Iterator[list[Event]]:
        """Yield the events in file order, a block at a time. Raises ``SourceError`` if none can be read."""
        size = BLOCK_BYTES
        view = memoryview(self._data)
        while boundary := _BETWEEN_EVENTS.search(self._data, self._at + size):
            # If the block is valid JSON, the boundary lies between two events: elsewhere a bracket or a quote is left open.
            events = self._decode(b"".join((b"[", view[self._at : boundary.start() + 1], b"]")))
            if events is None:  # the boundary lies within an event, or the file is damaged
                size *= 2
                continue
            yield events
            self._at = boundary.end() - 1
            size = BLOCK_BYTES
        yield self._read_end(b"".join((b"[", view[self._at :])))
        self._read_metadata()
        if self._cut is not None and not self._event_count:
            raise SourceError(_NO_EVENT, hint="The file is not a trace, or it is truncated before its first event.")

    def _read_end(self, text: bytes) -> list[Event]:
        """Decode the last events, with which ``text`` starts, and store the metadata after them."""
        try:
            _RAW_EVENTS.decode(text)
            behind = b""
        except _UNREADABLE as error:
            trailing = _TRAILING.search(str(error))
            if trailing is None and (repaired := _repair(text)) is not None:
                self._note(repaired)
                return self._read_end(repaired.text)
            if trailing is None:
                self._cut = self._cut or _DAMAGED
                return self._decode_before_damage(text)
            text, behind = text[: int(trailing[1]) - 1], text[int(trailing[1]) - 1 :]
        try:
            self._raw_metadata |= _decode_metadata(self._before_end + behind)
        except _UNREADABLE:
            self._cut = self._cut or _DAMAGED
        return self._decode(text) or []

    def _decode_before_damage(self, text: bytes) -> list[Event]:
        """Decode the events at the start of a truncated or damaged list, one by one."""
        events: list[Event] = []
        at, tries = 1, 0
        for end in _END_OF_OBJECT.finditer(text):
            decoded = self._decode(b"[%s]" % text[at : end.start() + 1])
            if decoded is not None:
                events += decoded
                at, tries = end.end(), 0
            elif (tries := tries + 1) == MAX_BRACES:
                break
        self._unread_bytes = len(text) - at
        return events

    def _decode(self, text: bytes) -> list[Event] | None:
        """Decode a list of events, without those that have fields of unexpected types; None if it is not a list."""
        try:
            events = _EVENTS.decode(text)
        except _UNREADABLE:
            repaired = _repair(text)
            try:
                raw = _RAW_EVENTS.decode(text if repaired is None else repaired.text)
            except _UNREADABLE:
                return None
            if repaired is not None:
                self._note(repaired)
            events = self._decode_one_by_one(raw)
        self._event_count += len(events)
        return events

    def _note(self, repaired: "_Repaired") -> None:
        self._not_numbers += repaired.not_numbers
        self._is_utf8 &= repaired.is_utf8

    def _decode_one_by_one(self, raw: Sequence[msgspec.Raw]) -> list[Event]:
        events = []
        for event in raw:
            try:
                if _PHASE.decode(event).ph in _PHASES:
                    events.append(_EVENT.decode(event))
            except _UNREADABLE:
                self._unexpected += 1
        return events

    def _read_metadata(self) -> None:
        """Decode the metadata, without fields of unexpected types."""
        for field in msgspec.structs.fields(KinetoMetadata):
            raw = self._raw_metadata.get(field.encode_name)
            if raw is None:
                continue
            try:
                metadata = _METADATA.decode(b'{"%s":%s}' % (field.encode_name.encode(), bytes(raw)))
            except _UNREADABLE:
                self._metadata_notes.append(f"{field.encode_name} has an unexpected type and was skipped")
            else:
                setattr(self.metadata, field.name, getattr(metadata, field.name))


class _Repaired(NamedTuple):
    """Text with null for tokens that JSON does not have, and in UTF-8."""

    text: bytes
    not_numbers: int
    is_utf8: bool


def _repair(text: bytes) -> _Repaired | None:
    """Repair text that cannot be decoded; None if nothing is wrong with its numbers and characters.

    Only damaged blocks are searched: searching a whole file takes a third of the time to read it.
    """
    fixed, not_numbers = _NOT_NUMBERS.subn(rb"\1null", text)
    is_utf8 = True
    try:
        str(fixed, "utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # cut within a character
            fixed, is_utf8 = fixed.decode("utf-8", "replace").encode(), False
    return _Repaired(fixed, not_numbers, is_utf8) if not_numbers or not is_utf8 else None


def _decode_metadata(text: bytes) -> RawMetadata:
    try:
        return _RAW_METADATA.decode(text)
    except _UNREADABLE:
        repaired = _repair(text)
        if repaired is None:
            raise
        return _RAW_METADATA.decode(repaired.text)


def _find_list(data: bytes) -> tuple[int, RawMetadata, bytes]:
    """Find the list of events: its offset after the bracket, the metadata before it, and the prefix that turns the text after
    the list into a JSON object.

    Raises ``SourceError`` if there is no list.
    """
    if top_level := _LIST.match(data):
        return top_level.end(), {}, b"{}"
    for match in islice(_NAMED_LIST.finditer(data), MAX_LISTS):  # the name may also occur in a string or deeper
        with suppress(*_UNREADABLE):
            return match.end(), _decode_metadata(data[: match.end()] + b"]}"), b'{"":0'
    raise SourceError(_NO_EVENT, hint="The file is not a trace, or it is truncated before its first event.")


def to_int(value: Number) -> int | None:
    """Convert to an integer of 64 bits; None if that is not possible."""
    try:
        number = value if value is None or isinstance(value, int) else int(float(value))
    except (ValueError, OverflowError):
        return None
    return number if number is None or abs(number) < 2**63 else None


def to_column(
    values: Sequence[Number], kind: pl.DataType, convert: Callable[[Number], int | float | None]
) -> pl.Series:
    """A column of the numbers; null for values that the column cannot hold."""
    try:
        return pl.Series(values, dtype=kind, strict=True)
    except (TypeError, OverflowError):  # some are strings, or too large
        return pl.Series([convert(value) for value in values], dtype=kind)
