"""The objects of one list in a JSON file, one after another, without holding the file."""

import json
from collections.abc import Iterator
from pathlib import Path

from clusterscape.collect.job_traces.text import BLOCK_BYTES, open_bytes
from clusterscape.errors import SourceError

_DECODER = json.JSONDecoder()


def iter_objects(path: Path, key: str | None) -> Iterator[dict[str, object]]:
    """Objects of the list under ``key``, or of the list that is the file. A damaged file raises SourceError saying where."""
    opening = f'"{key}"' if key else "["
    count, text, is_open = 0, "", False
    with open_bytes(path) as stream:
        while True:
            block = stream.read(BLOCK_BYTES // 4)
            text += block.decode("utf-8", "replace")
            if not is_open:
                at = text.find(opening)
                at = text.find("[", at) if at >= 0 else -1
                if at < 0 and block:
                    continue
                if at < 0:
                    raise SourceError(f"{path} holds no list of jobs", hint=f"It must have {opening} with a list.")
                text, is_open = text[at + 1 :], True
            at = 0
            while True:
                at = _skip(text, at)
                if at == len(text):
                    break
                if text[at] == "]":
                    return
                try:
                    found, at = _DECODER.raw_decode(text, at)
                except json.JSONDecodeError as error:
                    if block:
                        break
                    raise SourceError(f"{path}: job {count + 1} is damaged: {error.msg}") from error
                count += 1
                if isinstance(found, dict):
                    yield found
            text = text[at:]
            if not block:
                raise SourceError(f"{path} breaks off after job {count}", hint="The list of jobs has no end.")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at
