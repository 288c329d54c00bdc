"""A real kube-apiserver over a real etcd, where both are on PATH. No registry has the program, so that most machines skip it;
docs/design/kubernetes.md says how it is built from Debian's source package."""

import contextlib
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers.kubernetes_api import Api
from servers.programs import free_port

TOKEN = "secret"
VIEWER = "viewer"


@contextmanager
def kube_apiserver(folder: Path) -> Iterator[tuple[Api, Path]]:
    """The server and its CA file. ``TOKEN`` may do everything; ``VIEWER`` is the user `clusterscape` without rights."""
    programs = {name: shutil.which(name) for name in ("etcd", "kube-apiserver", "openssl")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not on PATH; docs/design/kubernetes.md says how to build them")
    keys = folder / "keys"
    keys.mkdir()
    subprocess.run(["openssl", "genrsa", "-out", keys / "sa.key", "2048"], check=True, capture_output=True)
    (keys / "tokens.csv").write_text(f"{TOKEN},admin,1,system:masters\n{VIEWER},clusterscape,2\n")
    etcd_port, peer_port, port = free_port(), free_port(), free_port()
    etcd_url = f"http://127.0.0.1:{etcd_port}"
    with _running(
        folder / "etcd.log",
        ["etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync", "--listen-client-urls", etcd_url,
         "--advertise-client-urls", etcd_url, "--listen-peer-urls", f"http://127.0.0.1:{peer_port}"],
    ), _running(
        folder / "apiserver.log",
        ["kube-apiserver", f"--etcd-servers={etcd_url}", f"--secure-port={port}", "--bind-address=127.0.0.1",
         "--advertise-address=127.0.0.1", f"--cert-dir={keys}", f"--token-auth-file={keys}/tokens.csv",
         "--service-cluster-ip-range=10.0.0.0/24", f"--service-account-key-file={keys}/sa.key",
         f"--service-account-signing-key-file={keys}/sa.key", "--service-account-issuer=https://test",
         "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority",
         "--watch-cache=true"],
    ):  # fmt: skip
        authority = keys / "apiserver.crt"
        api = Api(f"https://127.0.0.1:{port}", TOKEN)
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError, urllib.error.URLError):
                api.tls = ssl.create_default_context(cafile=str(authority))
                if api.ask("GET", "/apis/apps/v1")["kind"] == "APIResourceList":
                    break
            if time.monotonic() > deadline:
                log = (folder / "apiserver.log").read_text()[-3000:]
                pytest.fail(f"kube-apiserver did not start: {log}")
            time.sleep(0.3)
        yield api, authority


@contextmanager
def _running(log: Path, command: list[str | Path]) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, "HOME": str(log.parent)}
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
