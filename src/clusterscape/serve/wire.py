"""Tables as responses: Arrow IPC streams and Parquet files. Compression is ``serve/compression.py``'s."""

import io
from collections.abc import Mapping, Sequence

import polars as pl

from clusterscape.serve.redaction import RedactedResponse, RedactedTable

ARROW = "application/vnd.apache.arrow.stream"
ARROW_RESPONSE: dict[int | str, dict[str, object]] = {
    200: {"content": {ARROW: {}}, "description": "An Arrow IPC stream."}
}
PARQUET = "application/vnd.apache.parquet"
NO_STORE = "no-store"
REVALIDATE = "private, no-cache"
"""A browser may keep the response, and asks each time whether it still holds."""


def arrow_response(
    table: RedactedTable, headers: Mapping[str, str] | None = None, *, cache_control: str = NO_STORE
) -> RedactedResponse:
    """The table as Arrow IPC."""
    return RedactedResponse(
        to_ipc(table.frame), media_type=ARROW, headers={"Cache-Control": cache_control, **(headers or {})}
    )


def arrow_tables_response(
    tables: Sequence[RedactedTable], headers: Mapping[str, str] | None = None
) -> RedactedResponse:
    """Several tables in one body, one Arrow IPC stream after another. ``X-Tables``: the bytes of each, with commas between."""
    body, lengths = join_tables([table.frame for table in tables])
    return RedactedResponse(
        body, media_type=ARROW, headers={"Cache-Control": NO_STORE, "X-Tables": lengths, **(headers or {})}
    )


def join_tables(frames: Sequence[pl.DataFrame]) -> tuple[bytes, str]:
    """The streams of the tables, and their lengths in bytes before compression."""
    streams = [to_ipc(frame) for frame in frames]
    return b"".join(streams), ",".join(str(len(stream)) for stream in streams)


def parquet_response(table: RedactedTable, name: str) -> RedactedResponse:
    """The table as a Parquet file."""
    buffer = io.BytesIO()
    table.frame.clone().write_parquet(buffer, compression="zstd")
    headers = {"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}"'}
    return RedactedResponse(buffer.getvalue(), media_type=PARQUET, headers=headers)


def to_ipc(frame: pl.DataFrame) -> bytes:
    """Arrow IPC stream bytes. The oldest compatibility level: every reader knows plain (not view) strings."""
    buffer = io.BytesIO()
    # A frame is locked while it is written, and the writer needs the GIL for the buffer: another thread that holds the GIL
    # and merely looks at the same frame would wait for ever. A clone shares the data and has a lock of its own.
    frame.clone().write_ipc_stream(buffer, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()
