"""``clusterscape hang`` on processes that no tracker watches, on NCCL RAS, and on pages of PyTorch's debug server."""

import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hangs.made_up import ras_json, ras_text
from hangs.simulated import simulate
from typer.testing import CliRunner

from clusterscape.cli.entry import app
from clusterscape.cli.hang_looks import ask_ras
from clusterscape.collect.hangs.nccl_ras import parse_ras
from clusterscape.errors import NotFoundError

runner = CliRunner()
PAGES = Path(__file__).parents[2] / "data/hangs/debug_server"
SLEEP = "import sys, time; print('ready', flush=True); time.sleep(600)"


@contextmanager
def ranks_of(job: str, count: int) -> Iterator[list[int]]:
    """Processes with the variables of ranks, each started by a shell, as ``srun`` scripts do."""
    started = []
    try:
        for rank in range(count):
            environ = os.environ | {
                "SLURM_JOB_ID": job,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(count),
            }
            words = ["/bin/sh", "-c", '"$0" -c "$1"; true', sys.executable, SLEEP]
            process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, start_new_session=True)
            assert process.stdout is not None
            process.stdout.readline()
            started.append(process)
        yield [process.pid for process in started]
    finally:
        for process in started:
            os.killpg(process.pid, 9)
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


def test_own_processes_are_looked_at_when_a_job_is_named(tmp_path: Path) -> None:
    job = f"77{os.getpid()}"
    with ranks_of(job, 2):
        done = runner.invoke(app, ["hang", job, "--apart", "0.2", "--save", str(tmp_path / "kept")])
    assert done.exit_code == 0, done.output
    [host] = (tmp_path / "kept").iterdir()
    observed = json.loads((host / "look2/processes.json").read_text())
    assert [process["rank"] for process in observed["processes"]] == [0, 1]
    assert {process["state"] for process in observed["processes"]} == {"S"}
    again = runner.invoke(app, ["hang", str(tmp_path / "kept"), "--json"])
    assert {source["name"] for source in json.loads(again.stdout)["sources"]} >= {"processes"}


def test_python_is_the_rank_when_a_shell_started_it(tmp_path: Path) -> None:
    with ranks_of(f"78{os.getpid()}", 1) as [shell]:
        done = runner.invoke(app, ["hang", f"pid:{shell}", "--apart", "0.1", "--save", str(tmp_path)])
        assert done.exit_code == 0, done.output
        [host] = tmp_path.iterdir()
        [process] = json.loads((host / "look1/processes.json").read_text())["processes"]
        assert process["pid"] != shell


def test_error_says_how_when_no_process_belongs_to_the_job() -> None:
    done = runner.invoke(app, ["hang", "99999999"])
    assert isinstance(done.exception, NotFoundError)
    assert "srun --jobid 99999999" in str(done.exception.hint)


def test_ranks_are_read_when_the_debug_server_wrote_the_pages(tmp_path: Path) -> None:
    done = runner.invoke(app, ["hang", str(PAGES / "stacks.html"), str(PAGES / "fr_trace_json.html"), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["verdict"]["ranks"], report["verdict"]["place"]) == ([1], "train.py:9 in load")
    dump = "=== Rank 0: http://a:1/ ===\nError: 500\n=== Rank 1: http://b:1/ ===\n" + (
        'Thread 0x01 (most recent call first):\n  File "train.py", line 9 in load\n'
    )
    (tmp_path / "stacks_20261119.txt").write_text(dump)
    done = runner.invoke(app, ["hang", str(tmp_path), "--json"])
    assert json.loads(done.stdout)["ranks"] == [1]


class _Ras(socketserver.StreamRequestHandler):
    """Answers as NCCL RAS documents it: ``SET FORMAT`` only from 2.28.7 on."""

    json_text: str | None = None
    text = ""

    def handle(self) -> None:
        for line in self.rfile:
            words = line.decode().strip().lower()
            if words == "set format json":
                if self.json_text is None:
                    self.wfile.write(b"ERROR: Unknown command\n")
                    return
                self.wfile.write(b"OK\n")
            elif words == "verbose status":
                self.wfile.write((self.json_text or self.text).encode())
                return


@pytest.mark.parametrize("has_json", [True, False])
def test_ras_is_asked_for_json_first_when_it_answers(has_json: bool) -> None:
    simulation = simulate("absent", 4)
    text, document = ras_text(simulation, None, is_dead=False), ras_json(simulation, None, is_dead=False)
    handler = type("Handler", (_Ras,), {"text": text, "json_text": document if has_json else None})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answer = ask_ras(f"127.0.0.1:{server.server_address[1]}")
        server.shutdown()
    assert answer.startswith(b"{") is has_json
    assert parse_ras(answer) == parse_ras((document if has_json else text).encode())


def test_nothing_is_read_when_no_ras_answers() -> None:
    assert ask_ras("127.0.0.1:1") == b""
