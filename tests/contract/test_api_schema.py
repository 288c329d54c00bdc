"""Requests made up from the published API document: whatever is asked, the server answers and never fails."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from clusters.private_site import private_site
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from servers.reliability import note

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "4"))
"""Of each operation; `make soak` asks for many."""
AS_ADMIN = {"x-as": "admin"}
PATIENCE_S = 600
"""The first request may have to wait for compilation."""
ENDLESS = {"/api/v1/live"}
DOCUMENT = json.loads((Path(__file__).parents[2] / "web/openapi.json").read_text())
OPERATIONS = [
    (method, path) for path, methods in DOCUMENT["paths"].items() if path not in ENDLESS for method in methods
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseSchema]:
    with private_site(tmp_path_factory.mktemp("site")) as site:
        yield schemathesis.openapi.from_asgi("/openapi.json", site.app(is_private=False))
    note(
        "fuzz",
        what=f"Schemathesis: {EXAMPLES} made-up requests of each of {len(OPERATIONS)} operations",
        promised="no server error",
        measured="none where the test passed",
    )


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # in strategies; Schemathesis does
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
def test_server_answers_when_requests_follow_the_document(api: BaseSchema, method: str, path: str) -> None:
    @given(case=api[path][method].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: "schemathesis.Case[Any]") -> None:
        case.call_and_validate(checks=[not_a_server_error], headers=AS_ADMIN, timeout=PATIENCE_S)

    ask()
