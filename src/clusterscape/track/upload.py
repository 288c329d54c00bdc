"""Uploads the files of runs to a server; resumes at the offsets that the server reports."""

import contextlib
import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from clusterscape.errors import AccessError, NotFoundError, RefusedError, SourceError, ThrottledError
from clusterscape.model.run_frames import iter_frames
from clusterscape.track.redaction import mask_address
from clusterscape.track.spooled import spool_files
from clusterscape.track.tracker import BackgroundWork

SEND_EVERY_S = 5.0
FINISH_WITHIN_S = 5.0
MOST_BYTES = 4 * 2**20
UPLOADED_FILE = "uploaded.json"
_REFUSALS = (403, 410, 413, 422)
"""Permanent errors: a retry gets the same response."""
_KEPT = "The run is kept in {folder}."


class RunTarget(Protocol):
    """A destination of uploads."""

    url: str

    def send(self, folder: Path) -> int:
        """Send the missing part of a run; returns the number of accepted bytes.

        Raises SourceError, AccessError; RefusedError if a retry is useless.
        """
        ...


class RunServer:
    """A ClusterScape server that accepts runs."""

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SourceError(f"{mask_address(url)} is not an address", hint="Give http://HOST:PORT.")
        self.url = mask_address(url.rstrip("/"))
        self._parts = parts
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s
        self.looked_elsewhere: dict[str, int | None] = {}
        """By run: when another machine of its job last looked at a stall that lasts, by the server's last answer."""

    def send(self, folder: Path) -> int:
        """Send the part of a run that the server does not have; returns the accepted bytes. Raises SourceError, AccessError."""
        answer = self._ask("GET", f"/api/v1/runs/{quote(folder.name)}/files")
        has, looked = answer.get("offsets"), answer.get("looked_elsewhere")
        self.looked_elsewhere[folder.name] = looked if isinstance(looked, int) else None
        offsets = has if isinstance(has, dict) else {}
        sent = 0
        files = spool_files(folder)
        # The tracker's file describes the run and must come first.
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
            accepted = int(str(answer["offset"])) - offset
            if accepted <= 0:
                raise SourceError(f"{self.url} takes nothing of {file.name}", hint="Is it a ClusterScape?")
            offset += accepted
            sent += min(accepted, end)

    def read(self, path: str) -> object:
        """The response to a GET request. Raises NotFoundError, SourceError, AccessError."""
        return self._check(*self._exchange("GET", path, None))

    def delete(self, run: str) -> None:
        """Delete a run on the server. Raises NotFoundError, RefusedError, SourceError, AccessError."""
        self._check(*self._exchange("DELETE", f"/api/v1/runs/{quote(run)}", None))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, object]:
        response = self._check(*self._exchange(method, path, body))
        if not isinstance(response, dict):
            raise SourceError(f"{self.url} does not answer in JSON", hint="Is it a ClusterScape?")
        return response

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, str]:
        """Status, body, and the time to wait before a retry."""
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(str(self._parts.hostname), self._parts.port, timeout=self._timeout_s)
        headers = {**self._headers, "Content-Type": "application/octet-stream"}
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(
                f"{self.url} does not respond: {error}",
                hint="The run is kept on disk; upload it with `clusterscape runs upload`.",
            ) from None
        finally:
            connection.close()

    def _check(self, status: int, text: bytes, retry_after: str) -> object:
        message, hint = _problem(text)
        if status == 401:
            raise AccessError(f"{self.url} asks for a token", hint="Give it with --token.")
        if status == 404:
            raise NotFoundError(f"{self.url}: {message}", hint=hint or "Is the id right?")
        if status == 429:
            seconds = int(retry_after) if retry_after.isdecimal() else 60
            raise ThrottledError(f"{self.url} asks to wait: {message}", retry_after_s=seconds, hint=hint)
        if status in _REFUSALS:
            raise RefusedError(f"{self.url} refuses it ({status}): {message}", hint=hint)
        if status >= 300:
            raise SourceError(f"{self.url} answers {status}: {message}", hint=hint or "Is it a ClusterScape?")
        try:
            return json.loads(text)
        except ValueError:
            return None


def _problem(text: bytes) -> tuple[str, str | None]:
    """The server's error message and hint, or the beginning of its response."""
    try:
        problem = json.loads(text)["error"]
        return str(problem["message"]), str(problem["hint"]) if problem.get("hint") else None
    except (ValueError, KeyError, TypeError):
        return text[:200].decode("utf-8", "replace"), None


def is_uploaded(folder: Path) -> bool:
    """Whether all data on disk was sent."""
    try:
        marker = json.loads((folder / UPLOADED_FILE).read_text())
        return int(marker["bytes"]) == sum(file.stat().st_size for file in spool_files(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return False


class RunUploader(BackgroundWork):
    """Uploads every few seconds during runs, and once at their end; an unreachable server does not affect the runs.

    A run that the server refuses is not sent again; the user is notified once.
    """

    def __init__(
        self, target: RunTarget, folders: Sequence[Path], *, tell: Callable[[str], None] | None = None
    ) -> None:
        self.problem: str | None = None
        self.refused: dict[Path, str] = {}
        self.target = target
        self._folders = list(folders)
        self._tell = tell or _print
        self._wait_until = 0.0  # by the monotonic clock
        self._stop = threading.Event()
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="upload", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send the rest now, after the runs have ended."""
        self._stop.set()
        self._awake.set()

    def hurry(self) -> None:
        """Send now."""
        self._awake.set()

    def looked_elsewhere(self, folder: Path) -> int | None:
        """As the server last said."""
        return self.target.looked_elsewhere.get(folder.name) if isinstance(self.target, RunServer) else None

    def finish(self) -> None:
        """Send the rest, within a time limit."""
        self.stop()
        self._thread.join(FINISH_WITHIN_S)
        if self._thread.is_alive():
            self.problem = f"{self.target.url} is slow"

    def _loop(self) -> None:
        while True:
            self._awake.wait(SEND_EVERY_S)
            self._awake.clear()
            is_last = self._stop.is_set()
            if time.monotonic() >= self._wait_until:
                try:
                    self._send()
                except ThrottledError as error:
                    self.problem = error.message
                    self._wait_until = time.monotonic() + error.retry_after_s
                except (SourceError, AccessError, NotFoundError) as error:
                    self.problem = error.message
                except OSError as error:
                    self.problem = str(error)
            if is_last or len(self.refused) == len(self._folders):
                return

    def _send(self) -> None:
        """Upload all runs that were not refused; an error of one run does not affect the others."""
        for folder in [folder for folder in self._folders if folder not in self.refused]:
            try:
                self.target.send(folder)
            except RefusedError as error:
                self.refused[folder] = error.message
                self._tell(f"clusterscape: {error.message}. {error.hint or ''} {_KEPT.format(folder=folder)}")
        self.problem = next(iter(self.refused.values()), None)


def _print(message: str) -> None:
    """Print one line without control characters of the server's message."""
    line = "".join(sign if sign.isprintable() else " " for sign in message)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")
