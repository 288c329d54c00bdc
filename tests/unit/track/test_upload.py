"""Upload of runs: permanent refusals are not retried, temporary ones are, and the user gets one message."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clusterscape.errors import NotFoundError, RefusedError, SourceError, ThrottledError
from clusterscape.model.run_frames import encode_event
from clusterscape.track import upload
from clusterscape.track.upload import RunServer, RunUploader, is_uploaded

DEADLINE_S = 30.0


@dataclass
class Refusing:
    """A server that answers every piece of some runs with a status, and accepts all others."""

    url: str = ""
    statuses: dict[str, int] = field(default_factory=dict)  # by run
    pieces: list[str] = field(default_factory=list)  # runs, in the order their pieces came
    retry_after_s: int = 3600
    stuck: bool = False


@pytest.fixture
def server() -> Iterator[Refusing]:
    state = Refusing()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(200, {"offsets": {}})

        def do_DELETE(self) -> None:
            self._answer(state.statuses.get(self.path.split("/")[4], 204), {"error": {"message": "no", "hint": None}})

        def do_POST(self) -> None:
            run = self.path.split("/")[4]
            size = len(self.rfile.read(int(self.headers["Content-Length"])))
            state.pieces.append(run)
            status = state.statuses.get(run, 200)
            problem = {"error": {"code": "x", "message": "`$.user` is\x1b[2J wrong", "hint": "Fix it."}}
            self._answer(status, {"offset": 0 if state.stuck else size} if status == 200 else problem)

        def _answer(self, status: int, body: object) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Retry-After", str(state.retry_after_s))
            self.send_header("Content-Length", str(0 if status == 204 else len(text)))
            self.end_headers()
            if status != 204:
                self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        state.url = f"http://127.0.0.1:{listening.server_address[1]}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield state
        listening.shutdown()


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("r1", "r2")]
    for folder in paths:
        folder.mkdir()
        (folder / "tracker.spool").write_bytes(encode_event({"event": "run", "run": folder.name}))
    return paths


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("status", [403, 410, 413, 422])
def test_run_is_sent_once_and_reported_once_when_the_server_refuses_it(
    server: Refusing, folders: list[Path], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(upload, "SEND_EVERY_S", 0.01)
    server.statuses = {"r1": status}
    messages: list[str] = []
    uploader = RunUploader(RunServer(server.url), folders, tell=messages.append)
    (folders[1] / "tracker.spool").write_bytes(encode_event({"event": "run", "run": "r2"}) * 2)
    wait_for(lambda: server.pieces.count("r2") >= 5)
    uploader.finish()
    assert server.pieces.count("r1") == 1, "the other run is sent on, this one is not"
    assert len(messages) == 1
    assert f"refuses it ({status})" in messages[0]
    assert "Fix it." in messages[0]
    assert f"kept in {folders[0]}" in messages[0]
    assert uploader.problem is not None
    assert (folders[0] / "tracker.spool").exists()
    assert not is_uploaded(folders[0])
    assert is_uploaded(folders[1])


def test_sending_ends_when_all_runs_are_refused(
    server: Refusing, folders: list[Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(upload, "SEND_EVERY_S", 0.01)
    server.statuses = {"r1": 422, "r2": 422}
    uploader = RunUploader(RunServer(server.url), folders)
    wait_for(lambda: not uploader._thread.is_alive())
    assert sorted(server.pieces) == ["r1", "r2"]
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
    uploader.finish()


def test_server_is_left_alone_when_it_asks_to_wait(
    server: Refusing, folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "SEND_EVERY_S", 0.01)
    server.statuses = {"r1": 429}
    uploader = RunUploader(RunServer(server.url), folders)
    wait_for(lambda: uploader.problem is not None)
    uploader.finish()  # tries once more, unless it waits
    assert server.pieces == ["r1"]
    assert uploader.refused == {}


def test_run_is_sent_again_when_the_server_failed(
    server: Refusing, folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "SEND_EVERY_S", 0.01)
    server.statuses = {"r1": 503}
    uploader = RunUploader(RunServer(server.url), folders[:1])
    wait_for(lambda: server.pieces.count("r1") >= 3)
    server.statuses = {}
    wait_for(lambda: is_uploaded(folders[0]))
    uploader.finish()
    assert uploader.problem is None


def test_errors_repeat_the_servers_message_when_it_refuses(server: Refusing, folders: list[Path]) -> None:
    for status, kind in ((422, RefusedError), (404, NotFoundError), (429, ThrottledError), (500, SourceError)):
        server.statuses = {"r1": status}
        with pytest.raises(kind) as caught:
            RunServer(server.url).send(folders[0])
        assert "is\x1b[2J wrong" in caught.value.message
        assert caught.value.hint == "Fix it."
    server.statuses = {"r1": 403}
    with pytest.raises(RefusedError):
        RunServer(server.url).delete("r1")
    RunServer(server.url).delete("r2")


def test_sending_ends_when_a_server_takes_nothing(server: Refusing, folders: list[Path]) -> None:
    server.stuck = True
    with pytest.raises(SourceError, match="takes nothing"):
        RunServer(server.url).send(folders[0])
