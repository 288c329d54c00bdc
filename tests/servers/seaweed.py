"""A real S3-compatible store: SeaweedFS from PyPI, own folder, own ports of loopback, gone afterwards."""

import json
import secrets
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from servers.programs import free_port
from servers.venvs import need_venv

START_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class SeaweedServer:
    """A running store; requests must be signed with these keys."""

    port: int
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """As S3 clients want it."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextmanager
def seaweed_server() -> Iterator[SeaweedServer]:
    """Start a store; it is up within seconds."""
    weed = need_venv("seaweed") / "weed"
    folder = Path(tempfile.mkdtemp(prefix="clusterscape-seaweed-"))
    server = SeaweedServer(free_port(), secrets.token_hex(8), secrets.token_hex(16))
    keys = [{"accessKey": server.access_key, "secretKey": server.secret_key}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    (folder / "s3.json").write_text(
        json.dumps({"identities": [{"name": "test", "credentials": keys, "actions": actions}]})
    )
    words = [str(weed), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=20",
             "-master.volumeSizeLimitMB=64", "-s3", f"-s3.config={folder}/s3.json", f"-s3.port={server.port}",
             "-s3.port.iceberg=0", "-s3.port.lance=0"]  # fmt: skip
    for part in ("master", "volume", "filer", "s3"):
        words += [f"-{part}.port.grpc={free_port()}"]
        if part != "s3":
            words += [f"-{part}.port={free_port()}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _wait_until_up(server, process, folder / "log")
        yield server
    finally:
        process.kill()  # asked to stop it would take 15 s, and its folder goes anyway
        process.wait(15)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_up(server: SeaweedServer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            urllib.request.urlopen(server.url, timeout=2).close()
        except urllib.error.HTTPError as error:  # it asks for a signature: it is up
            error.close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"SeaweedFS did not start:\n{log.read_text()[-4000:]}") from None
            time.sleep(0.1)
        else:
            return
