"""A real MLflow server over PostgreSQL and an S3-compatible store, from an environment of its own."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.postgres import PostgresServer
from servers.programs import free_port
from servers.seaweed import SeaweedServer
from servers.venvs import need_venv

START_TIMEOUT_S = 180.0
BUCKET = "mlflow"


@dataclass(frozen=True)
class MlflowServer:
    """A running server, or one that is yet to be started on its port."""

    port: int
    bin: Path  # its Python environment, which has MLflow's client, too

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: dict[str, object] | None = None, **query: str) -> Any:
        """One question of the REST interface."""
        data = json.dumps(body).encode() if body is not None else None
        target = f"{self.url}/api/2.0/mlflow/{path}?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(target, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def artifact(self, run: dict[str, Any], path: str) -> bytes:
        """A file of a run."""
        base = urllib.parse.urlsplit(run["info"]["artifact_uri"]).path
        target = f"{self.url}/api/2.0/mlflow-artifacts/artifacts{base}/{path}"
        with urllib.request.urlopen(target, timeout=60) as answer:
            content: bytes = answer.read()
        return content


def mlflow_place() -> MlflowServer:
    """Where the server will be."""
    return MlflowServer(free_port(), need_venv("mlflow"))


@contextmanager
def mlflow_server(place: MlflowServer, postgres: PostgresServer, store: SeaweedServer) -> Iterator[MlflowServer]:
    """Start it; the first time its code is compiled, which takes a while."""
    environ = {**os.environ, **store.environ, "MLFLOW_S3_ENDPOINT_URL": store.url, "MLFLOW_DISABLE_TELEMETRY": "true"}
    environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # its job runners are processes of their own
    environ = {key: value for key, value in environ.items() if key != "PYTHONPATH"}
    make = f"import boto3; boto3.client('s3', endpoint_url='{store.url}').create_bucket(Bucket='{BUCKET}')"
    subprocess.run([str(place.bin / "python"), "-c", make], env=environ, check=True)
    database = postgres.new_database().replace("postgresql://", "postgresql+psycopg://")
    folder = Path(tempfile.mkdtemp(prefix="clusterscape-mlflow-"))
    words = [str(place.bin / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(place.port), "--workers", "1",
             "--backend-store-uri", database, "--artifacts-destination", f"s3://{BUCKET}"]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, env=environ, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until_up(place, process, folder / "log")
        yield place
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # it starts workers of its own, in the same session
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_up(place: MlflowServer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Returns once it answers."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            urllib.request.urlopen(f"{place.url}/health", timeout=5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MLflow did not start:\n{log.read_text()[-4000:]}") from None
            time.sleep(0.2)
        else:
            return
