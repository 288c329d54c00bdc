"""Serves the built client: immutable assets, and one HTML page for all other paths."""

import gzip
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"

_NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>ClusterScape</title>
<p style="font: 15px system-ui; margin: 4rem auto; max-width: 36rem">The page is not built yet. Run <code>make setup</code> in the
checkout (it needs no Node: the build brings its own). The API works: <a href="/api/v1/cluster">/api/v1/cluster</a>.</p>"""


COMPRESSED = frozenset({".js", ".css", ".svg"})


@lru_cache(maxsize=256)
def _compress(path: str) -> bytes:
    return gzip.compress(Path(path).read_bytes(), compresslevel=9, mtime=0)


class _Assets(StaticFiles):
    """Static assets. Their names contain a hash of their content, so browsers may cache them; they are compressed once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        request_headers = Headers(scope=scope)
        is_whole = isinstance(response, FileResponse) and scope["method"] == "GET" and "range" not in request_headers
        if (
            not is_whole
            or Path(path).suffix not in COMPRESSED
            or "gzip" not in request_headers.get("accept-encoding", "")
        ):
            return response
        assert isinstance(response, FileResponse)
        body = await run_in_threadpool(_compress, str(response.path))
        headers = {name: response.headers[name] for name in ("Cache-Control", "ETag", "Last-Modified")}
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(body, media_type=response.media_type, headers=headers)


def _find_file(static: Path, path: str) -> Path | None:
    """A file of the client; None: the path is a view of the page."""
    try:
        file = (static / path).resolve()
        return file if path and file.is_file() and file.is_relative_to(static.resolve()) else None
    except OSError:  # the name is too long for the file system
        return None


def install_page(app: FastAPI, static: Path = STATIC) -> None:
    """Serve the client for every path outside the API."""
    if (static / "assets").is_dir():
        app.mount("/assets", _Assets(directory=static / "assets"), name="assets")

    @app.get("/{path:path}", include_in_schema=False)
    def page(path: str, request: Request) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404, f"there is no {request.url.path}")
        file = _find_file(static, path)
        if file is not None:
            return FileResponse(file)
        index = static / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, status_code=503)
        return FileResponse(index, headers={"Cache-Control": "no-cache"})
