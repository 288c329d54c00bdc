"""Writes ``web/openapi.json`` from the server's routes; the client's types are generated from it (``npm run codegen``).

``--check`` writes nothing and fails where the file no longer says what the server does.
"""

import json
import sys
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from clusterscape import __version__
from clusterscape.serve.app import ROUTES, describe_api

TARGET = Path(__file__).parents[1] / "web/openapi.json"


def schema_text() -> str:
    """The OpenAPI document as it is committed."""
    app: FastAPI = describe_api()
    for area in ROUTES:
        app.include_router(area.router)
    document = get_openapi(title=app.title, version=__version__, description=app.description, routes=app.routes)
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> int:
    """Write or check."""
    text = schema_text()
    if "--check" in sys.argv:
        if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{TARGET.name} is out of date: run `make codegen` and commit what it writes", file=sys.stderr)
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
