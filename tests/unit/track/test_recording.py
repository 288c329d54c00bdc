"""Recorded environment variables, the notice to the user, and runs of an earlier version."""

import json
import sys
from pathlib import Path

import pytest
from tracking.command import Command

from clusterscape.model.run_frames import NO_STEP, encode_event, encode_samples
from clusterscape.track.recording_notice import ShownNotices
from clusterscape.track.reproduce import RECORDED_VARIABLES, is_recorded, parse_patterns, select_variables
from clusterscape.track.spooled import read_run, redact_spools

LIGHT = ("-l", "none")
NOW = 1_794_800_000_000
NOWHERE = "http://127.0.0.1:9"
TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.parametrize(
    "name",
    [
        "CUDA_VISIBLE_DEVICES",
        "NCCL_DEBUG",
        "OMP_NUM_THREADS",
        "SLURM_JOB_ID",
        "RANK",
        "PYTHONHASHSEED",
        "HF_HUB_CACHE",
        "LANG",
    ],
)
def test_variable_is_recorded_when_it_changes_how_a_training_runs(name: str) -> None:
    assert is_recorded(name, RECORDED_VARIABLES)


@pytest.mark.parametrize(
    "name",
    [
        *("SLURM_JWT", "SLURM_CONF_SERVER", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "HF_TOKEN", "TF_VAR_password"),
        *("DATABASE_URL", "HOME", "USER", "MAIL", "SSH_AUTH_SOCK", "CLUSTERSCAPE_SERVER__TOKEN", "GIT_ASKPASS"),
    ],
)
def test_variable_is_not_recorded_when_nobody_allowed_it(name: str) -> None:
    assert select_variables({name: "x"}) == {}


def test_last_pattern_decides_when_the_user_changes_the_list() -> None:
    environ = {"MY_A": "1", "MY_B": "2", "PATH": "/bin"}
    assert select_variables(environ, parse_patterns(["MY_*", "!MY_B"], {})) == {"MY_A": "1", "PATH": "/bin"}
    assert select_variables(environ, parse_patterns(["!PATH"], {})) == {}
    assert select_variables(environ, parse_patterns(["none"], {})) == {}
    assert select_variables(environ, parse_patterns(["none, MY_B"], {})) == {"MY_B": "2"}
    assert select_variables(environ, parse_patterns(["MY_A"], {"CLUSTERSCAPE_RECORD_ENV": "none"})) == {"MY_A": "1"}


def test_nothing_of_the_environment_is_recorded_when_the_user_says_none(command: Command) -> None:
    command.script("model.py", "")
    assert command("run", *LIGHT, "--record-env", "none", "model.py").returncode == 0
    environment = command.only_run().environment
    assert environment is not None
    assert environment["environ"] == {}


def test_notice_is_shown_once_per_server_when_runs_are_sent(command: Command) -> None:
    command.script("model.py", "")
    command.variables = {"OMP_NUM_THREADS": "2", "NCCL_PASSWORD": "hush-hush-7"}
    words = ("model.py", "--api-key", "hush-hush-8")
    first = command("run", *LIGHT, "--url", NOWHERE, *words)
    assert f"this run is recorded and sent to {NOWHERE}" in first.stderr
    assert "OMP_NUM_THREADS" in first.stderr
    assert "masked of these: NCCL_PASSWORD" in first.stderr
    assert "--api-key '(masked)'" in first.stderr
    assert "hush" not in first.stderr
    assert "this run is recorded" not in command("run", *LIGHT, "--url", NOWHERE, *words).stderr
    assert "this run is recorded" in command("run", *LIGHT, "--url", NOWHERE + "0", *words).stderr
    command.variables |= {"NCCL_DEBUG": "INFO"}
    again = command("run", *LIGHT, "--url", NOWHERE, *words)
    assert "this run is recorded" in again.stderr
    assert "NCCL_DEBUG" in again.stderr
    del command.variables["NCCL_DEBUG"]
    assert "this run is recorded" not in command("run", *LIGHT, "--url", NOWHERE, *words).stderr


def test_notice_is_not_shown_when_nothing_is_sent(command: Command) -> None:
    command.script("model.py", "")
    assert "recorded" not in command("run", *LIGHT, "model.py").stderr


def test_notice_is_shown_before_upload_when_a_run_was_recorded_without_a_server(command: Command) -> None:
    command.script("model.py", "")
    command.variables = {"OMP_NUM_THREADS": "2"}
    assert command("run", *LIGHT, "model.py").returncode == 0
    assert "OMP_NUM_THREADS" in command("runs", "upload", "--url", NOWHERE).stderr
    assert "OMP_NUM_THREADS" not in command("runs", "upload", "--url", NOWHERE).stderr


def test_plan_shows_the_notice_once_when_it_sends(command: Command) -> None:
    command.script("model.py", "")
    command.script(
        "plan.csv", "Experiment,Workload,Devices,File,Listeners\n1,1,cpu,model.py,none\n1,2,cpu,model.py,none\n"
    )
    done = command("plan", "plan.csv", "--url", NOWHERE)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("this run is recorded") == 1


def test_same_is_shown_as_is_recorded_when_nothing_runs(command: Command) -> None:
    command.script("model.py", "import pathlib; pathlib.Path('ran').touch()")
    command.variables = {"OMP_NUM_THREADS": "2", "HF_TOKEN": TOKEN}
    words = ("--", sys.executable, "model.py", "--api-key", "hush-hush-8")
    shown = command("run", *LIGHT, "--show-recorded", "--json", "--url", NOWHERE, *words)
    assert shown.returncode == 0, shown.stderr
    assert not (command.folder / "ran").exists()
    assert command.runs() == []
    document = json.loads(shown.stdout)
    assert document["to"] == [NOWHERE]
    assert command("run", *LIGHT, *words).returncode == 0
    run = command.only_run()
    described = {name: value for name, value in document["environment"].items() if value is not None}
    assert run.environment == described, "what this machine does not have is left out"
    del document["run"]["pid"], document["run"]["params"]
    assert {name: run.about[name] for name in document["run"]} == document["run"]
    text = command("run", *LIGHT, "--show-recorded", *words).stdout
    assert "OMP_NUM_THREADS=2" in text
    assert "and not sent" in text
    assert TOKEN not in text
    assert "hush" not in text


def test_notice_is_shown_again_when_its_file_is_damaged(tmp_path: Path) -> None:
    shown = ShownNotices(tmp_path / "state")
    shown.remember(["http://a"], ["X", "Y"])
    assert shown.is_shown("http://a", ["X"])
    assert not shown.is_shown("http://a", ["X", "Z"])
    assert not shown.is_shown("http://b", [])
    (tmp_path / "state/notices.json").write_text("{")
    assert not shown.is_shown("http://a", ["X"])


def test_spool_is_masked_and_keeps_its_size_when_an_earlier_version_wrote_it(tmp_path: Path) -> None:
    events: list[dict[str, object]] = [
        {
            "event": "run",
            "run": "r",
            "name": "x",
            "command": ["x.py", "--api-key", "hush-hush-8-hush"],
            "queued_at": NOW,
        },
        {"event": "environment", "environ": {"SLURM_JWT": "hush-hush-8-hush", "HOME": "/home/me", "LANG": "C"}},
        {"event": "series", "code": 0, "name": "loss", "scope": "run", "method": "measured"},
    ]
    data = b"".join(map(encode_event, events)) + encode_samples([0], [5], [NO_STEP], [1.5])
    file = tmp_path / "tracker.spool"
    file.write_bytes(data)
    assert redact_spools(tmp_path)
    assert b"hush" not in file.read_bytes()
    assert len(file.read_bytes()) == len(data)
    run = read_run(tmp_path)
    assert run.about["command"] == ["x.py", "--api-key", "(masked)"]
    assert run.environment == {"environ": {"LANG": "C"}}
    assert (run.samples, run.is_torn) == (1, False)
    assert not redact_spools(tmp_path)


def test_exception_is_masked_on_the_disk_when_it_holds_a_secret(command: Command) -> None:
    command.variables = {"PLAIN_SECRET": "opaque-Words-42"}
    command.script("model.py", f"import os\nraise ValueError('got {TOKEN} and ' + os.environ['PLAIN_SECRET'])\n")
    done = command("run", *LIGHT, "model.py")
    assert done.returncode == 1
    assert TOKEN in done.stderr  # the script's own output is its own
    run = command.only_run()
    assert run.cause == "ValueError: got (masked) and (masked)"
    for file in run.folder.iterdir():
        assert TOKEN.encode() not in file.read_bytes()
        assert b"opaque-Words-42" not in file.read_bytes()


def test_exception_is_masked_when_the_script_cannot_import_clusterscape(command: Command) -> None:
    command.script("model.py", f"import sys\nsys.modules['clusterscape'] = None\nraise ValueError('{TOKEN}')\n")
    assert command("run", *LIGHT, "model.py").returncode == 1
    run = command.only_run()
    assert run.cause == "ValueError: (masked)"
    assert TOKEN.encode() not in b"".join(file.read_bytes() for file in run.folder.iterdir())


def test_guide_lists_every_variable_when_runs_record_it() -> None:
    guide = (Path(__file__).parents[3] / "docs/guide/runs.md").read_text(encoding="utf-8")
    assert not [pattern for pattern in RECORDED_VARIABLES if f"`{pattern}`" not in guide]
