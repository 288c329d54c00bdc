"""Runs of a workload in MLflow: their parent ends with the last of them."""

from collections.abc import Mapping
from pathlib import Path

from clusterscape.model.run_frames import encode_event
from clusterscape.track.mlflow.sending import MlflowRuns
from clusterscape.track.mlflow.server import MlflowServer

T = 1_794_800_000_000


class RecordingServer(MlflowServer):
    """Remembers the ends of runs; a real server is in tests/integration."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")
        self.ends: list[tuple[str, str, int | None]] = []

    def experiment(self, name: str) -> str:
        return "1"

    def create_run(
        self, experiment: str, name: str, *, start_ms: int, user: str | None, tags: Mapping[str, str]
    ) -> str:
        return name

    def log_batch(self, run: str, **_: object) -> None:
        pass

    def artifact_path(self, run: str) -> str | None:
        return None

    def update_run(self, run: str, status: str, *, end_ms: int | None) -> None:
        self.ends.append((run, status, end_ms))


def add_event(folder: Path, event: str, **fields: object) -> None:
    with (folder / "tracker.spool").open("ab") as file:
        file.write(encode_event({"event": event, **fields}))


def test_parent_ends_with_the_last_of_its_runs_when_runs_end_one_after_the_other(tmp_path: Path) -> None:
    server = RecordingServer()
    runs = MlflowRuns(server, tmp_path)
    folders = [tmp_path / "20261118-090109-aaaaaa", tmp_path / "20261118-090109-bbbbbb"]
    about = {"name": "model.py", "experiment": "e", "workload": "pair", "host": "h", "user": "me", "queued_at": T}
    for folder, letter in zip(folders, "AB", strict=True):
        folder.mkdir()
        add_event(folder, "run", run=folder.name, letter=letter, **about)
        runs.send(folder)
    add_event(folders[0], "end", state="failed", at=T + 2000)
    runs.send(folders[0])
    assert server.ends == [("A", "FAILED", T + 2000)]
    add_event(folders[1], "end", state="completed", at=T + 5000)
    runs.send(folders[1])
    runs.send(folders[1])
    assert server.ends[1:] == [("B", "FINISHED", T + 5000), ("pair", "FAILED", T + 5000)]
