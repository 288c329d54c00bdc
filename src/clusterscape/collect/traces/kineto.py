"""PyTorch profiler (Kineto) files: bytes to typed events. A file that ends too early gives the events before its end.

What the events mean is decided in ``kineto_spans.py``.
"""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec

from clusterscape.collect.traces.files import Content
from clusterscape.errors import SourceError

Number = int | float | str | None

MOST_US = 4 * 10**15
"""Beyond the year 2096: no clock told that, and as nanoseconds it would not fit into 64 bits."""
_WITHIN = msgspec.Meta(ge=-MOST_US, le=MOST_US)
Microseconds = Annotated[int, _WITHIN] | Annotated[float, _WITHIN]
BaseNanoseconds = Annotated[int, msgspec.Meta(ge=0, le=MOST_US * 1000)]


class EventArguments(msgspec.Struct, gc=False):
    """What is read of an event's ``args``; profilers write much more."""

    external_id: Number = msgspec.field(default=None, name="External id")
    correlation: Number = None
    stream: Number = None
    bytes: Number = None
    flops: Number = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    group: Number = msgspec.field(default=None, name="Process Group Name")
    group_description: str | None = msgspec.field(default=None, name="Process Group Description")
    group_ranks: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="Process Group Ranks")
    group_size: Number = msgspec.field(default=None, name="Group size")
    input_elements: Number = msgspec.field(default=None, name="In msg nelems")
    output_elements: Number = msgspec.field(default=None, name="Out msg nelems")
    data_type: str | None = msgspec.field(default=None, name="dtype")
    sequence: Number = msgspec.field(default=None, name="Seq")
    source_rank: Number = msgspec.field(default=None, name="Src Rank")
    target_rank: Number = msgspec.field(default=None, name="Dst Rank")
    input_shapes: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="Input type")
    settings: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw, name="Concrete Inputs")


class Event(msgspec.Struct, gc=False):
    """One trace event. Times are microseconds, since ``baseTimeNanoseconds`` where the file has one."""

    ph: str = ""
    cat: str | None = None
    name: str | int | None = None
    pid: Number = None
    tid: Number = None
    ts: Microseconds | None = None
    dur: Microseconds | None = None
    args: EventArguments | None = None


class GroupInfo(msgspec.Struct):
    """A process group as PyTorch describes it."""

    pg_name: Number = None
    pg_desc: str | None = None
    ranks: list[int] = []


class DistributedInfo(msgspec.Struct):
    """The rank's place in the run."""

    backend: str | None = None
    rank: Number = None
    world_size: Number = None
    pg_config: list[GroupInfo] = []


class Device(msgspec.Struct):
    """A GPU of the machine."""

    name: str | None = None


class Document(msgspec.Struct):
    """A whole file."""

    events: list[Event] = msgspec.field(default_factory=list, name="traceEvents")
    distributed: DistributedInfo | None = msgspec.field(default=None, name="distributedInfo")
    devices: list[Device] = msgspec.field(default_factory=list, name="deviceProperties")
    base_ns: BaseNanoseconds | None = msgspec.field(default=None, name="baseTimeNanoseconds")


class _LooseDocument(msgspec.Struct):
    """The same where some events are odd: each is then decoded by itself."""

    events: list[msgspec.Raw] = msgspec.field(default_factory=list, name="traceEvents")
    base_ns: BaseNanoseconds | None = msgspec.field(default=None, name="baseTimeNanoseconds")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document and what was wrong with it, in words."""

    document: Document
    is_complete: bool
    notes: tuple[str, ...]


MAX_CUTS = 8  # an event is at most a few braces deep
_BYTE = re.compile(r"byte (\d+)")
_WHOLE = msgspec.json.Decoder(Document)
_LIST = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)


def parse_kineto(content: Content) -> Parsed:
    """Events of one file.

    Raises
    ------
    SourceError
        Where not a single event can be read.
    """
    notes = [content.cut] if content.cut else []
    data = content.data
    try:
        return Parsed(_decode(data), not notes, tuple(notes))
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _parse_before_cut(content, str(error))
    try:
        document, odd = _decode_one_by_one(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # odd, and damaged behind that
        return _parse_before_cut(content, str(error))
    notes.append(f"{odd} events have fields of unexpected types and were left out")
    return Parsed(document, not content.cut, tuple(notes))


def _parse_before_cut(content: Content, message: str) -> Parsed:
    document = _decode_before_cut(content.data, message)
    notes = [content.cut or "its JSON ends in the middle or is damaged"]
    notes.append(f"the {len(document.events):,} events before that are used")
    return Parsed(document, False, tuple(notes))


def _decode(data: bytes) -> Document:
    if data.lstrip()[:1] == b"[":
        return Document(events=_LIST.decode(data))
    return _WHOLE.decode(data)


def _decode_before_cut(data: bytes, message: str) -> Document:
    """Cut after the last whole event and close the brackets; an event's own braces cost a try each."""
    found = _BYTE.search(message)
    end = int(found[1]) if found and "truncated" not in message else len(data)
    closing = b"]" if data.lstrip()[:1] == b"[" else b"]}"
    for _ in range(MAX_CUTS):
        end = data.rfind(b"}", 0, end)
        if end < 0:
            break
        try:
            document = _decode(data[: end + 1] + closing)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if document.events:
            return document
    raise SourceError("no event can be read from it", hint="The file is no trace, or was cut before its first event.")


def _decode_one_by_one(data: bytes) -> tuple[Document, int]:
    if data.lstrip()[:1] == b"[":
        loose = _LooseDocument(events=msgspec.json.decode(data, type=list[msgspec.Raw]))
    else:
        loose = msgspec.json.decode(data, type=_LooseDocument)
    events, odd = [], 0
    for raw in loose.events:
        try:
            events.append(_EVENT.decode(raw))
        except msgspec.ValidationError:
            odd += 1
    return Document(events=events, base_ns=loose.base_ns, distributed=_find_distributed(data)), odd


def _find_distributed(data: bytes) -> DistributedInfo | None:
    class Head(msgspec.Struct):
        distributed: DistributedInfo | None = msgspec.field(default=None, name="distributedInfo")

    try:
        return msgspec.json.decode(data, type=Head).distributed
    except msgspec.ValidationError:
        return None


@contextmanager
def paused_collection() -> Iterator[None]:
    """Decoding makes hundreds of thousands of objects without cycles: the collector would only walk them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
