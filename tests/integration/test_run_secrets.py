"""A run with secrets everywhere, sent to a real server: none of them is on the disk, in the server's data or in its answers."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from servers.own_server import own_server
from tracking.command import Command, wait_for
from tracking.plain_mlflow import write_client

pytestmark = pytest.mark.server

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTQ4MDAwMDAsInN1biI6Im1lIn0.c2lnbmF0dXJlLW9mLXRlc3Q"
SECRETS = {
    "slurm": JWT,
    "aws id": "AKIA" + "Q3EGZJ7KX5W2MNP4",
    "aws secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz99EXAMPLEk",
    "wandb": "0123456789abcdef" + "fedcba9876543210" + "89abcdef",
    "address": "Pa55-of-address",
    "option": "Opt10n-of-command",
    "option with equals": "Opt10n-with-equals",
    "inside sh": "Ins1de-of-shell",
    "param": "Par4m-of-script",
    "mlflow param": "Par4m-of-mlflow",
    "tag": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "exception": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "exception by name": "Exc3ption-by-name",
    "diff": "sk-" + "proj-AbCdEf123456GhIjKl7890MnOpQr",
    "diff by name": "D1ff-by-name",
    "remote": "R3mote-of-git",
    "untracked": "glpat-" + "AbC1-dEf2GhI3jKl4mNo5",
    "allowed variable": "All0wed-variable",
    "allowed value": "xoxb-" + "123456789012-abcdefABCDEF",
    "metric": "nvapi-" + "AbCdEf123456GhIjKl7890MnOpQr",
}

SCRIPT = f"""\
import os
import clusterscape
from mlflow.tracking._tracking_service.client import TrackingServiceClient

run = clusterscape.run()
run.params({{"lr": "0.125", "hf_token": "{SECRETS["param"]}"}})
run.tag(note="uses {SECRETS["tag"]}")
run.log({{"loss": 0.5, "loss/{SECRETS["metric"]}": 1.0}}, step=1)
client = TrackingServiceClient()
client.log_param(client.create_run("1").info.run_id, "api_key", "{SECRETS["mlflow param"]}")
raise ValueError(
    "harmless-cause {SECRETS["exception"]} password='{SECRETS["exception by name"]}' "
    + os.environ["WANDB_API_KEY"] + " {SECRETS["param"]} {SECRETS["mlflow param"]}"
)
"""


def git(folder: Path, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, env=environ)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A repository and an environment full of secrets."""
    folder = tmp_path / "code"
    folder.mkdir()
    command = Command(folder=folder, home=tmp_path / "home", deadline_s=180)
    (folder / ".env").write_text("HARMLESS_LINE=1\n")
    git(folder, "init", "-q")
    git(folder, "add", ".env")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "remote", "add", "origin", f"https://me:{SECRETS['remote']}@git.example.org/x.git")
    with (folder / ".env").open("a") as file:
        file.write(f"OPENAI={SECRETS['diff']}\nDB_PASSWORD={SECRETS['diff by name']}\n")
    (folder / f"untracked-{SECRETS['untracked']}").touch()
    command.script("model.py", SCRIPT)
    write_client(folder)
    command.variables = {
        "SLURM_JWT": SECRETS["slurm"],
        "AWS_ACCESS_KEY_ID": SECRETS["aws id"],
        "AWS_SECRET_ACCESS_KEY": SECRETS["aws secret"],
        "WANDB_API_KEY": SECRETS["wandb"],
        "DATABASE_URL": f"postgresql://me:{SECRETS['address']}@db.example.org/x",
        "CUDA_REGISTRY_PASSWORD": SECRETS["allowed variable"],
        "NCCL_NOTE": f"see {SECRETS['allowed value']}",
        "OMP_NUM_THREADS": "2",
    }
    return command


def left_in(folder: Path) -> bytes:
    """Names and contents of all files below a folder."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return b"\n".join(part for file in files for part in (str(file).encode(), file.read_bytes()))


def answers_of(url: str, run: str) -> bytes:
    """Everything the server answers about runs."""
    paths = ["", "/tree", f"/metrics?run={run}", f"/{run}", f"/{run}/files", f"/workloads/{run}"]
    paths += [f"/series?run={run}&metric=loss", f"/bands?group={run}&metric=loss"]
    parts = []
    for path in paths:
        with urllib.request.urlopen(f"{url}/api/v1/runs{path}", timeout=30) as answer:
            parts.append(answer.read())
    return b"\n".join(parts)


def test_no_secret_is_stored_or_sent_when_a_run_is_full_of_them(command: Command, tmp_path: Path) -> None:
    words = ["--api-key", SECRETS["option"], f"--hub-token={SECRETS['option with equals']}", "--size", "harmless-word"]
    shell = f"HF_TOKEN={SECRETS['inside sh']} exec {sys.executable} model.py " + " ".join(words)
    with own_server(tmp_path, f'[storage]\ndata_dir = "{tmp_path / "data"}"\n') as url:
        done = command("run", "-l", "proc", "--url", url, "--", "sh", "-c", shell)
        assert done.returncode == 1, done.stderr
        # A busy machine: the tracker waits for the server only for some seconds.
        wait_for(lambda: command("runs", "upload", "--url", url).returncode == 0, "sending the run")
        run = command.only_run()
        answers = answers_of(url, run.run)
        shown = json.loads(urllib.request.urlopen(f"{url}/api/v1/runs/{run.run}", timeout=30).read())
    # Harmless values have arrived in every way.
    assert shown["row"]["params"] | {"api_key": "", "hf_token": ""} == {"lr": "0.125", "api_key": "", "hf_token": ""}
    assert "harmless-word" in shown["command"][2]
    assert "+HARMLESS" not in shown["environment"]["git"]["diff"]
    assert " HARMLESS_LINE=1" in shown["environment"]["git"]["diff"]
    assert shown["environment"]["environ"]["OMP_NUM_THREADS"] == "2"
    assert "git.example.org/x.git" in shown["environment"]["git"]["remote"]
    assert any("harmless-cause" in text for text in shown["exceptions"])
    places = {"answers": answers, "state folder": left_in(command.home), "data folder": left_in(tmp_path / "data")}
    leaked = [(kind, place) for kind, secret in SECRETS.items() for place in places if secret.encode() in places[place]]
    assert leaked == []
    assert "SLURM_JWT" not in shown["environment"]["environ"]
    assert SECRETS["option"] not in done.stderr.partition("Traceback")[0]
