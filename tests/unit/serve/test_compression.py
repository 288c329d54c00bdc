"""Responses are compressed in one place, with an encoding that the client accepts, unless they must not be."""

import gzip
from collections.abc import AsyncIterator, Callable

import pytest
import zstandard
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.responses import Response, StreamingResponse

from clusterscape.serve.wire import Compress, choose_encoding

TEXT = b'{"gpu": 1}' * 20_000
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
    "gzip": gzip.decompress,
    "identity": bytes,
}


async def _lines() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield TEXT


RESPONSES: dict[str, Callable[[], Response]] = {
    "json": lambda: Response(TEXT, media_type="application/json"),
    "short": lambda: Response(b"{}", media_type="application/json"),
    "parquet": lambda: Response(TEXT, media_type="application/vnd.apache.parquet"),
    "part": lambda: Response(TEXT, 206, {"Content-Range": "bytes 0-9/10"}, "text/plain"),
    "packed": lambda: Response(gzip.compress(TEXT), headers={"Content-Encoding": "gzip"}, media_type="text/plain"),
    "stream": lambda: StreamingResponse(_lines(), media_type="application/json"),
}


@pytest.fixture(scope="module")
def client() -> TestClient:
    app = FastAPI()
    for name, respond in RESPONSES.items():
        app.add_api_route(f"/{name}", respond, response_class=Response, response_model=None)
    app.add_middleware(Compress)
    return TestClient(app)


def raw_body(client: TestClient, path: str, encoding: str) -> tuple[dict[str, str], bytes]:
    with client.stream("GET", path, headers={"Accept-Encoding": encoding}) as response:
        return dict(response.headers), b"".join(response.iter_raw())


@pytest.mark.parametrize("encoding", UNPACK)
def test_body_is_the_same_when_it_is_compressed(client: TestClient, encoding: str) -> None:
    headers, body = raw_body(client, "/json", encoding)
    assert UNPACK[encoding](body) == TEXT
    assert headers.get("content-encoding", "identity") == encoding
    assert (headers["content-length"], headers["vary"]) == (str(len(body)), "Accept-Encoding")


@pytest.mark.parametrize("name", ["short", "parquet", "part"])
def test_body_is_sent_as_it_is_when_compressing_gains_nothing_or_breaks_it(client: TestClient, name: str) -> None:
    headers, body = raw_body(client, f"/{name}", "zstd, gzip")
    assert "content-encoding" not in headers
    assert body == bytes(RESPONSES[name]().body)


def test_body_is_compressed_once_when_the_route_did_it(client: TestClient) -> None:
    headers, body = raw_body(client, "/packed", "zstd, gzip")
    assert (headers["content-encoding"], gzip.decompress(body)) == ("gzip", TEXT)


def test_stream_is_passed_on_as_it_comes_when_it_has_no_end_yet(client: TestClient) -> None:
    headers, body = raw_body(client, "/stream", "zstd, gzip")
    assert ("content-encoding" in headers, body) == (False, TEXT * 3)


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip", "gzip"),
        ("", "identity"),
        ("zstd;q=0, gzip;q=0.5", "gzip"),
        ("br", "identity"),
    ],
)
def test_best_common_encoding_is_chosen_when_a_client_names_some(accepted: str, chosen: str) -> None:
    assert choose_encoding(accepted) == chosen
