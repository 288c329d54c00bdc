"""Everything in a request has a maximum: read from the document that the server publishes, and tried on some of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters.queued import QueuedCluster
from clusters.queued import queued_cluster as queued_cluster
from fastapi.testclient import TestClient

from clusterscape.errors import QueryError
from clusterscape.query.scheduling.whatif_answers import MAX_ADDED_NODES, QueueWhatIf
from clusterscape.serve.app import create_app

Schema = dict[str, Any]


class BoundsReader:
    """Walks the schemas of requests and yields unbounded fields."""

    def __init__(self, document: Schema) -> None:
        self._document = document

    def unbounded(self) -> Iterator[str]:
        for operations in self._document["paths"].values():
            for operation in operations.values():
                name = operation["operationId"]
                for parameter in operation.get("parameters", ()):
                    yield from self._walk(parameter["schema"], f"{name} {parameter['name']}")
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    yield from self._walk(content["schema"], f"{name} body")

    def _walk(self, schema: Schema, where: str, visited: tuple[str, ...] = ()) -> Iterator[str]:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            if name not in visited:
                yield from self._walk(self._document["components"]["schemas"][name], where, (*visited, name))
            return
        for union in ("anyOf", "oneOf", "allOf"):
            for member in schema.get(union, ()):
                yield from self._walk(member, where, visited)
        if "enum" in schema or "const" in schema:
            return
        kind = schema.get("type")
        if kind == "object":
            yield from self._walk_object(schema, where, visited)
        elif not _is_bounded(schema, kind):
            yield f"{where}: {kind}"
        if kind == "array":
            yield from self._walk(schema.get("items", {}), f"{where}[]", visited)

    def _walk_object(self, schema: Schema, where: str, visited: tuple[str, ...]) -> Iterator[str]:
        for name, field in schema.get("properties", {}).items():
            yield from self._walk(field, f"{where}.{name}", visited)
        values = schema.get("additionalProperties", False)
        if values is False:
            return
        if "maxProperties" not in schema:
            yield f"{where}: properties"
        if isinstance(values, dict):
            yield from self._walk({"type": "string", **schema.get("propertyNames", {})}, f"{where} names", visited)
            yield from self._walk(values, f"{where}.*", visited)


def _is_bounded(schema: Schema, kind: str | None) -> bool:
    if kind == "array":
        return "maxItems" in schema
    if kind == "string":
        return bool({"maxLength", "pattern", "format"} & schema.keys())
    if kind in ("integer", "number"):
        low, high = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
        return bool(low & schema.keys()) and bool(high & schema.keys())
    return kind in ("boolean", "null") or bool({"anyOf", "oneOf", "allOf"} & schema.keys())


def test_every_request_field_has_a_maximum_when_the_document_is_read(
    queued_cluster: QueuedCluster, tmp_path: Path
) -> None:
    document = create_app(queued_cluster.queries, static=tmp_path).openapi()
    assert len(document["paths"]) > 80
    assert not sorted(set(BoundsReader(document).unbounded()))


def test_unbounded_field_is_named_when_its_bound_is_removed(queued_cluster: QueuedCluster, tmp_path: Path) -> None:
    document = create_app(queued_cluster.queries, static=tmp_path).openapi()
    fields = document["components"]["schemas"]["QueueWhatIf"]["properties"]
    del fields["added"]["maxProperties"], fields["futures"]["maximum"], fields["drained"]["maxItems"]
    assert set(BoundsReader(document).unbounded()) == {
        f"{route} body.{field}"
        for route in ("simulate_what_if", "start_what_if")
        for field in ("added: properties", "futures: integer", "drained: array")
    }


@pytest.mark.parametrize(
    "question",
    [
        {"added": {"main": 10_000_000}},
        {"added": {"main": MAX_ADDED_NODES, "spare": MAX_ADDED_NODES}},
        {"added": {"main": -1}},
        {"futures": 1_000_000},
        {"priorities": {"slurm:1": 10**30}},
        {"drained": ["x" * 1000]},
    ],
)
def test_what_if_is_refused_in_words_when_it_would_take_the_memory(
    queued_cluster: QueuedCluster, tmp_path: Path, question: dict[str, object]
) -> None:
    app = create_app(queued_cluster.queries, services=queued_cluster.services, static=tmp_path)
    with TestClient(app) as client:
        for path in ("/api/v1/scheduling/whatif", "/api/v1/scheduling/whatif/runs"):
            answer = client.post(path, json=question)
            assert answer.status_code == 422, answer.text
            assert answer.json()["error"]["message"]


def test_nodes_are_bounded_for_commands_when_no_server_checks_the_question(queued_cluster: QueuedCluster) -> None:
    with pytest.raises(QueryError):
        queued_cluster.queries.what_if.check(QueueWhatIf(added={"main": MAX_ADDED_NODES + 1}))


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/cluster?at=99999999999999999999",
        "/api/v1/series?metric=power_watts&unit=n1:0&start=-5",
        "/api/v1/traces/x/curves?from_ns=nan",
        "/api/v1/runs/series?run=a&metric=loss&start=inf",
        f"/api/v1/workloads/{'x' * 600}",
    ],
)
def test_absurd_values_are_refused_when_they_are_asked_for(
    queued_cluster: QueuedCluster, tmp_path: Path, address: str
) -> None:
    with TestClient(create_app(queued_cluster.queries, static=tmp_path)) as client:
        assert client.get(address).status_code == 422


def test_bands_are_refused_when_they_join_too_many_lines(queued_cluster: QueuedCluster, tmp_path: Path) -> None:
    group, metrics = ",".join(f"r{number}" for number in range(101)), [f"m{number}" for number in range(100)]
    with TestClient(create_app(queued_cluster.queries, static=tmp_path)) as client:
        answer = client.get("/api/v1/runs/bands", params={"group": group, "metric": metrics})
    assert answer.status_code == 422
    assert "lines" in answer.json()["error"]["message"]
