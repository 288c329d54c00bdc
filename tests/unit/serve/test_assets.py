"""Files of the built client: complete, compressed once, cached by the browser."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from clusterscape.serve.page import install_page

SCRIPT = "console.log('größer');\n" * 500


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "main-1.js").write_text(SCRIPT)
    (tmp_path / "assets" / "font-1.woff2").write_bytes(b"font" * 500)
    (tmp_path / "index.html").write_text("<!doctype html>")
    app = FastAPI()
    install_page(app, tmp_path)
    return TestClient(app)


@pytest.mark.parametrize("encoding", ["gzip, br", "identity"])
def test_script_is_whole_when_compressed_or_not(client: TestClient, encoding: str) -> None:
    for _ in range(2):
        answer = client.get("/assets/main-1.js", headers={"Accept-Encoding": encoding})
        assert answer.text == SCRIPT
        assert ("content-encoding" in answer.headers) == ("gzip" in encoding)
        assert "javascript" in answer.headers["content-type"]
        assert "immutable" in answer.headers["cache-control"]


def test_file_is_sent_as_it_is_when_it_is_compressed_already_or_a_part_is_asked_for(client: TestClient) -> None:
    assert "content-encoding" not in client.get("/assets/font-1.woff2").headers
    part = client.get("/assets/main-1.js", headers={"Range": "bytes=0-10", "Accept-Encoding": "gzip"})
    assert (part.status_code, part.content) == (206, SCRIPT.encode()[:11])


def test_nothing_is_sent_when_the_browser_has_it(client: TestClient) -> None:
    first = client.get("/assets/main-1.js", headers={"Accept-Encoding": "gzip"})
    again = client.get("/assets/main-1.js", headers={"If-None-Match": first.headers["etag"], "Accept-Encoding": "gzip"})
    assert (again.status_code, again.content) == (304, b"")
