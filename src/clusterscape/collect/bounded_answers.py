"""Bodies of HTTP answers, decompressed here and never held beyond a number of bytes. Knows no source."""

import zlib

import aiohttp

STEP_BYTES = 2**20
"""Decompressed at a time: a small piece may become a thousand times as large."""
_WINDOW_BITS = {"gzip": 31, "deflate": 15}


class AnswerTooLargeError(Exception):
    """The answer is larger than the settings allow."""


class UnknownEncodingError(Exception):
    """The answer is compressed in a way that was not asked for."""


async def read_bounded(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The body of an answer; of a session that does not decompress by itself (``auto_decompress=False``).

    Raises AnswerTooLargeError, UnknownEncodingError and what aiohttp raises; zlib.error for a damaged body.
    """
    if (response.content_length or 0) > most_bytes:
        raise AnswerTooLargeError
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    if encoding not in _WINDOW_BITS and encoding != "identity":
        raise UnknownEncodingError(encoding)
    unpacker = None if encoding == "identity" else zlib.decompressobj(_WINDOW_BITS[encoding])
    body = bytearray()
    async for chunk in response.content.iter_any():
        if unpacker is None:
            body += chunk
        else:
            _unpack_into(body, unpacker, chunk, most_bytes)
        if len(body) > most_bytes:
            raise AnswerTooLargeError
    return bytes(body)


def _unpack_into(body: bytearray, unpacker: "zlib._Decompress", chunk: bytes, most_bytes: int) -> None:
    # Behind its end nothing is decompressed: what comes there would be handed back again and again.
    while chunk and not unpacker.eof and len(body) <= most_bytes:
        body += unpacker.decompress(chunk, STEP_BYTES)
        chunk = unpacker.unconsumed_tail
