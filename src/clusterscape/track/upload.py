"""Sends the files of runs to a server, from where it says it has them. Can be broken off and taken up again anywhere."""

import http.client
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from clusterscape.errors import AccessError, NotFoundError, SourceError
from clusterscape.model.run_frames import iter_frames
from clusterscape.track.spooled import spool_files
from clusterscape.track.tracker import BesideRuns

SEND_EVERY_S = 5.0
FINISH_WITHIN_S = 5.0
MOST_BYTES = 4 * 2**20
UPLOADED_FILE = "uploaded.json"


class RunTarget(Protocol):
    """Somewhere runs are sent to."""

    url: str

    def send(self, folder: Path) -> int:
        """Send what is missing there of a run; returns the bytes that were taken. Raises SourceError, AccessError."""
        ...


class RunServer:
    """A ClusterScape that takes runs in."""

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SourceError(f"{url} is not an address", hint="Give http://HOST:PORT.")
        self.url = url.rstrip("/")
        self._parts = parts
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s

    def send(self, folder: Path) -> int:
        """Send what the server does not have yet of a run; returns the bytes it took. Raises SourceError, AccessError."""
        has = self._ask("GET", f"/api/v1/runs/{quote(folder.name)}/files").get("offsets")
        offsets = has if isinstance(has, dict) else {}
        sent = 0
        files = spool_files(folder)
        # The tracker's file says what the run is; the others need that.
        for file in sorted(files, key=lambda file: file.name != "tracker.spool"):
            sent += self._send_file(folder.name, file, int(offsets.get(file.name, 0)))
        total = sum(file.stat().st_size for file in files)
        marker = {"url": self.url, "at": int(time.time() * 1000), "bytes": total}
        (folder / UPLOADED_FILE).write_text(json.dumps(marker))
        return sent

    def _send_file(self, run: str, file: Path, offset: int) -> int:
        sent = 0
        while True:
            with file.open("rb") as opened:
                opened.seek(offset)
                data = opened.read(MOST_BYTES)
            end = max((frame.end for frame in iter_frames(data)), default=0)
            if not end and len(data) == MOST_BYTES:  # one frame larger than a piece
                data = file.read_bytes()[offset:]
                end = next((frame.end for frame in iter_frames(data)), 0)
            if not end:
                return sent
            path = f"/api/v1/runs/{quote(run)}/files/{quote(file.name)}?offset={offset}"
            answer = self._ask("POST", path, data[:end])
            offset = int(str(answer["offset"]))
            sent += end

    def read(self, path: str) -> object:
        """What the server says to a question. Raises NotFoundError, SourceError, AccessError."""
        status, text = self._exchange("GET", path, None)
        if status == 404:
            raise NotFoundError(f"{self.url}: {_message(text)}", hint="Is the id right?")
        return self._check(status, text)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, object]:
        told = self._check(*self._exchange(method, path, body))
        if not isinstance(told, dict):
            raise SourceError(f"{self.url} does not answer in JSON", hint="Is it a ClusterScape?")
        return told

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(str(self._parts.hostname), self._parts.port, timeout=self._timeout_s)
        headers = {**self._headers, "Content-Type": "application/octet-stream"}
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(
                f"{self.url} does not answer: {error}",
                hint="What was recorded stays; `clusterscape runs upload` sends it.",
            ) from None
        finally:
            connection.close()

    def _check(self, status: int, text: bytes) -> object:
        if status == 401:
            raise AccessError(f"{self.url} asks for a token", hint="Give it with --token.")
        if status >= 300:
            raise SourceError(f"{self.url} answers {status}: {_message(text)}", hint="Is it a ClusterScape?")
        try:
            return json.loads(text)
        except ValueError:
            return None


def _message(text: bytes) -> str:
    """What the server says is wrong, or the beginning of its answer."""
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200].decode("utf-8", "replace")


def is_uploaded(folder: Path) -> bool:
    """Whether everything on the disk was sent."""
    try:
        marker = json.loads((folder / UPLOADED_FILE).read_text())
        return int(marker["bytes"]) == sum(file.stat().st_size for file in spool_files(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return False


class SendBeside(BesideRuns):
    """Sends every few seconds while runs go on, and once at their end; a server that is away is no fault of the runs."""

    def __init__(self, target: RunTarget, folders: Sequence[Path]) -> None:
        self.problem: str | None = None
        self._target = target
        self._folders = list(folders)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="upload", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The runs have ended: send the rest now."""
        self._stop.set()

    def finish(self) -> None:
        """Send the rest, as far as that is quick."""
        self.stop()
        self._thread.join(FINISH_WITHIN_S)
        if self._thread.is_alive():
            self.problem = f"{self._target.url} is slow"

    def _loop(self) -> None:
        while True:
            is_last = self._stop.wait(SEND_EVERY_S)
            try:
                for folder in self._folders:
                    self._target.send(folder)
                self.problem = None
            except (SourceError, AccessError) as error:
                self.problem = error.message
            except OSError as error:
                self.problem = str(error)
            if is_last:
                return
