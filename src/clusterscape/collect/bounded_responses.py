"""Reads and decompresses HTTP response bodies, and stops at a maximum number of bytes. Independent of the source."""

import zlib

import aiohttp

STEP_BYTES = 2**20
"""Maximum bytes per decompression call: a small chunk can expand a thousandfold."""
_WINDOW_BITS = {"gzip": 31, "deflate": 15}


class ResponseTooLargeError(Exception):
    """The response is larger than the settings allow."""


class UnsupportedEncodingError(Exception):
    """The response has a content encoding that was not requested."""


async def read_bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return the decompressed body of a response. The session must not decompress by itself (``auto_decompress=False``).

    Raises ResponseTooLargeError, UnsupportedEncodingError, zlib.error for a damaged body, and any error of aiohttp.
    """
    if (response.content_length or 0) > max_bytes:
        raise ResponseTooLargeError
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    if encoding not in _WINDOW_BITS and encoding != "identity":
        raise UnsupportedEncodingError(encoding)
    decompressor = None if encoding == "identity" else zlib.decompressobj(_WINDOW_BITS[encoding])
    body = bytearray()
    async for chunk in response.content.iter_any():
        if decompressor is None:
            body += chunk
        else:
            _decompress_into(body, decompressor, chunk, max_bytes)
        if len(body) > max_bytes:
            raise ResponseTooLargeError
    return bytes(body)


def _decompress_into(body: bytearray, decompressor: "zlib._Decompress", chunk: bytes, max_bytes: int) -> None:
    # Stop at the end of the stream: zlib would return trailing bytes as unconsumed forever.
    while chunk and not decompressor.eof and len(body) <= max_bytes:
        body += decompressor.decompress(chunk, STEP_BYTES)
        chunk = decompressor.unconsumed_tail
