"""Streams the objects of one list in a JSON file, without holding the whole file in memory."""

import codecs
import json
import re
from collections.abc import Callable, Iterator

from clusterscape.collect.job_traces.text import BLOCK_BYTES, FileFaults, TraceSource, open_bytes, read_block
from clusterscape.errors import SourceError

BATCH_ROWS = 20_000
BATCH_CHARACTERS = 4 * BLOCK_BYTES
"""The size of a batch of jobs that is converted to columns: rows, or characters of text."""

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n,]*+")


def _iter_objects(source: TraceSource, key: str | None, faults: FileFaults) -> Iterator[tuple[dict[str, object], int]]:
    """Yield the objects of the list under ``key`` (or of the top-level list) with their length in characters.

    A damaged or truncated file gives those before the damage, which is noted in ``faults``. If there are none, raises SourceError
    with the position.
    """
    count = 0
    try:
        for job, length in _iter_sound(source, key, faults):
            count += 1
            yield job, length
    except _DamagedJobError as damage:
        if not count:
            raise SourceError(f"{source}: {damage}", hint="Is the copy complete?") from None
        faults.damage = str(damage)


class _DamagedJobError(ValueError):
    """Where and how the list is damaged."""


def _iter_sound(source: TraceSource, key: str | None, faults: FileFaults) -> Iterator[tuple[dict[str, object], int]]:
    count, text, size = 0, "", 0
    for block, is_last in _iter_list(source, key, faults):
        text += block
        size += len(block)
        at = 0
        while True:
            at = _skip(text, at)
            if at == len(text):
                break
            if text[at] == "]":
                return
            try:
                value, end = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError as error:
                if not is_last:
                    source.check_length(len(text) - at, f"a job ({count + 1:,})")
                    break
                faults.unused_share = (len(text) - at) / size
                if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
                    raise _DamagedJobError(f"it is truncated in job {count + 1}") from error
                raise _DamagedJobError(f"job {count + 1} is damaged: {error.msg}") from error
            except RecursionError:
                raise _DamagedJobError(f"job {count + 1} is nested too deeply") from None
            except ValueError:  # a number of more than 4,300 digits
                raise _DamagedJobError(f"a number in job {count + 1} is too long") from None
            count += 1
            source.check_rows(count)
            if isinstance(value, dict):
                yield value, end - at
            at = end
        text = text[at:]
    raise _DamagedJobError(f"it is truncated after job {count}: the list of jobs has no end")


def iter_row_batches(
    source: TraceSource,
    key: str | None,
    to_row: Callable[[int, dict[str, object]], dict[str, object]],
    faults: FileFaults,
) -> Iterator[list[dict[str, object]]]:
    """Yield batches of rows; ``to_row`` gets the number of each job, from 1, and the job."""
    rows: list[dict[str, object]] = []
    characters = 0
    for number, (job, length) in enumerate(_iter_objects(source, key, faults), start=1):
        rows.append(to_row(number, job))
        characters += length
        if len(rows) == BATCH_ROWS or characters > BATCH_CHARACTERS:
            yield rows
            rows, characters = [], 0
    if rows:
        yield rows


def _iter_list(source: TraceSource, key: str | None, faults: FileFaults) -> Iterator[tuple[str, bool]]:
    """Yield the text after the list's opening bracket, block by block, and whether it is the last block."""
    opening = f'"{key}"' if key else "["
    is_open, text = False, ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with open_bytes(source) as stream:
        while True:
            block = read_block(stream, faults, BLOCK_BYTES // 4)
            text += decoder.decode(block, final=not block)
            if not is_open:
                at = text.find(opening)
                at = text.find("[", at) if at >= 0 else -1
                if at < 0 and block:
                    source.check_length(len(text), "a part before its list of jobs")
                    continue
                if at < 0:
                    raise SourceError(f"{source} has no list of jobs", hint=f"It must have {opening} with a list.")
                text, is_open = text[at + 1 :], True
            yield text, not block
            text = ""
            if not block:
                return


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at
