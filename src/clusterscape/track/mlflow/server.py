"""Client of an MLflow server's REST API: experiments, runs, batches, artifacts. Keeps one connection."""

import base64
import http.client
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from clusterscape.errors import AccessError, ConfigError, SourceError
from clusterscape.track.redaction import mask_address

MOST_METRICS = 1000
MOST_PARAMS = 100
MOST_TAGS = 100
_ARTIFACT_SCHEME = "mlflow-artifacts:"
_HINT = "The run is kept on disk; upload it with `clusterscape runs upload --mlflow URI`."


class MlflowServer:
    """Authenticates with ``MLFLOW_TRACKING_TOKEN``, or ``…_USERNAME`` and ``…_PASSWORD``, as MLflow does."""

    def __init__(self, uri: str, *, environ: Mapping[str, str] = os.environ, timeout_s: float = 10.0) -> None:
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"{mask_address(uri)} is not an MLflow server's address",
                hint="Give http://HOST:PORT of `mlflow server`.",
            )
        self.uri = mask_address(uri.rstrip("/"))
        self._parts = parts
        self._timeout_s = timeout_s
        self._headers = _authorization(parts.username, parts.password, environ)
        self._connection: http.client.HTTPConnection | None = None

    def experiment(self, name: str) -> str:
        """The id of the experiment, which is created if it does not exist."""
        response = self._ask("GET", "experiments/get-by-name", {"experiment_name": name}, missing_ok=True)
        if response is not None:
            return str(response["experiment"]["experiment_id"])
        created = self._ask("POST", "experiments/create", {"name": name})
        assert created is not None
        return str(created["experiment_id"])

    def create_run(
        self, experiment: str, name: str, *, start_ms: int, user: str | None, tags: Mapping[str, str]
    ) -> str:
        """The id of a new run."""
        body = {
            "experiment_id": experiment,
            "run_name": name,
            "start_time": start_ms,
            "user_id": user,
            "tags": _pairs(tags),
        }
        created = self._ask("POST", "runs/create", body)
        assert created is not None
        return str(created["run"]["info"]["run_id"])

    def artifact_path(self, run: str) -> str | None:
        """The path at which the server accepts artifacts of a run; None if clients write to the store directly."""
        response = self._ask("GET", "runs/get", {"run_id": run})
        uri = str(response["run"]["info"]["artifact_uri"]) if response else ""
        if uri.startswith(_ARTIFACT_SCHEME):
            return urlsplit(uri).path.strip("/")
        return None

    def update_run(self, run: str, status: str, *, end_ms: int | None) -> None:
        """Set the final status of a run."""
        self._ask("POST", "runs/update", {"run_id": run, "status": status, "end_time": end_ms})

    def log_batch(
        self,
        run: str,
        *,
        metrics: Sequence[Mapping[str, object]] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log in as many requests as MLflow's limits require; idempotent."""
        for start in range(0, len(metrics), MOST_METRICS):
            self._ask("POST", "runs/log-batch", {"run_id": run, "metrics": metrics[start : start + MOST_METRICS]})
        for name, pairs, most in (("params", params, MOST_PARAMS), ("tags", tags, MOST_TAGS)):
            items = _pairs(pairs or {})
            for start in range(0, len(items), most):
                self._ask("POST", "runs/log-batch", {"run_id": run, name: items[start : start + most]})

    def put_artifact(self, place: str, file: Path) -> None:
        """Store a file at ``place`` of the server's artifacts."""
        with file.open("rb") as opened:
            headers = {"Content-Length": str(file.stat().st_size), "Content-Type": "application/octet-stream"}
            self._request("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{quote(place)}", opened, headers)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(
        self, method: str, path: str, body: Mapping[str, object], *, missing_ok: bool = False
    ) -> dict[str, Any] | None:
        target = f"/api/2.0/mlflow/{path}"
        if method == "GET":
            status, text = self._request(method, f"{target}?{urlencode(body)}", None, {}, missing_ok=missing_ok)
        else:
            data = json.dumps({key: value for key, value in body.items() if value is not None}).encode()
            status, text = self._request(method, target, data, {"Content-Type": "application/json"})
        if status == 404:
            return None
        try:
            document = json.loads(text) if text else {}
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise SourceError(f"{self.uri} does not answer in JSON", hint="Is it an MLflow server?")
        return document

    def _request(
        self, method: str, target: str, body: Any, headers: Mapping[str, str], *, missing_ok: bool = False
    ) -> tuple[int, bytes]:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(str(self._parts.hostname), self._parts.port, timeout=self._timeout_s)
        try:
            path = self._parts.path.rstrip("/") + target
            self._connection.request(method, path, body=body, headers={**self._headers, **headers})
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise SourceError(f"{self.uri} does not respond: {error}", hint=_HINT) from None
        if answer.status in (401, 403):
            raise AccessError(
                f"authentication at {self.uri} failed", hint="Set MLFLOW_TRACKING_TOKEN, or user and password."
            )
        if answer.status >= 300 and not (missing_ok and answer.status == 404):
            raise SourceError(f"{self.uri} answers {answer.status}: {_message(text)}", hint=_HINT)
        return answer.status, text


def _authorization(user: str | None, password: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    if token := environ.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    user = user or environ.get("MLFLOW_TRACKING_USERNAME")
    password = password or environ.get("MLFLOW_TRACKING_PASSWORD")
    if not user:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()}


def _pairs(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs.items()]


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])[:300]
    except (ValueError, KeyError, TypeError):
        return text[:200].decode("utf-8", "replace")
