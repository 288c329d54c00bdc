"""MIG instances of plans, with a fake driver library: created only if allowed, used by UUID, always removed."""

import json
import signal
from pathlib import Path

import pytest
from servers.programs import need_program
from tracking.command import Command, wait_for
from tracking.stub_nvml import build_stub

from clusterscape.errors import ConfigError, SourceError
from clusterscape.track.devices import MigInstance
from clusterscape.track.plans.collocation import parse_collocation
from clusterscape.track.plans.mig import Journal, check_profiles, hold_instances

PLAN = """\
Experiment,Workload,Devices,Collocation,File,Listeners,Params
1,1,0,3g.40gb,model.py,none,
1,1,0,{second},model.py,none,
"""
SCRIPT = "import os\nopen('seen', 'a').write(os.environ['CUDA_VISIBLE_DEVICES'] + '\\n')\n"
BEFORE = "0 3 1\n"  # somebody else's instance


@pytest.fixture
def machine(command: Command, tmp_path: Path) -> Command:
    """A machine whose GPU 0 has MIG switched on, and one instance."""
    compiler = need_program("gcc", "gcc")
    (tmp_path / "stub").mkdir()
    (tmp_path / "instances").write_text(BEFORE)
    command.variables = build_stub(compiler, tmp_path / "stub") | {
        "STUB_NVML_GPUS": "1",
        "STUB_NVML_MIG": str(tmp_path / "instances"),
    }
    command.script("model.py", SCRIPT)
    command.script("plan.csv", PLAN.format(second="3g.40gb"))
    return command


def instances(machine: Command) -> str:
    return Path(machine.variables["STUB_NVML_MIG"]).read_text()


def test_runs_see_their_own_instance_when_mig_is_allowed(machine: Command) -> None:
    done = machine("plan", "plan.csv", "--allow-mig")
    assert done.returncode == 0, done.stderr
    assert sorted((machine.folder / "seen").read_text().split()) == ["MIG-stub-0-4", "MIG-stub-0-5"]
    assert instances(machine) == BEFORE
    about = [run.about for run in machine.runs()]
    assert [(fields["letter"], fields["collocation"]) for fields in about] == [
        ("0_A_3g.40gb", "3g.40gb"),
        ("0_B_3g.40gb", "3g.40gb"),
    ]
    assert about[0]["mig"] == [{"gpu": 0, "instance": 4, "profile": "3g.40gb", "uuid": "MIG-stub-0-4"}]


def test_nothing_is_touched_when_mig_is_not_allowed(machine: Command) -> None:
    done = machine("plan", "plan.csv")
    assert done.returncode == 2
    assert "plan.csv, line 2: 3g.40gb would make a MIG instance on GPU 0" in done.stderr
    assert "--allow-mig" in done.stderr
    assert machine("plan", "plan.csv", "--dry-run").returncode == 0
    assert instances(machine) == BEFORE
    assert machine.runs() == []


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("2g.20gb", "GPU 0 has no MIG profile 2g.20gb"),
        ("7g.80gb", "no MIG instance 7g.80gb on GPU 0"),  # no room next to the others
    ],
)
def test_instances_are_restored_when_one_cannot_be_created(machine: Command, second: str, message: str) -> None:
    machine.script("plan.csv", PLAN.format(second=second))
    done = machine("plan", "plan.csv", "--allow-mig")
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert instances(machine) == BEFORE
    assert machine.runs() == []


def test_reason_is_reported_when_mig_is_switched_off(machine: Command) -> None:
    del machine.variables["STUB_NVML_MIG"]
    done = machine("plan", "plan.csv", "--allow-mig")
    assert done.returncode == 2
    assert "MIG is switched off on GPU 0" in done.stderr


def test_leftovers_are_removed_when_the_plan_before_was_killed(machine: Command) -> None:
    machine.script("model.py", f"{SCRIPT}import time\ntime.sleep(600)\n")
    with machine.started("plan", "plan.csv", "--allow-mig") as plan:
        wait_for(lambda: (machine.folder / "seen").exists(), "the start of a run")
        plan.send_signal(signal.SIGKILL)
        plan.wait(60)
    assert instances(machine).splitlines() == ["0 3 1", "0 4 3", "0 5 3"]
    machine.script("model.py", SCRIPT)
    assert machine("plan", "plan.csv", "--allow-mig").returncode == 0
    assert instances(machine) == BEFORE


class FakeDriver:
    """A driver with failures that the fake library cannot produce."""

    def __init__(self) -> None:
        self.there: list[int] = []
        self.busy = 0

    def profiles(self, gpu: int) -> list[str]:
        return ["1g.10gb"] if gpu == 0 else []

    def create(self, gpu: int, profile: str) -> MigInstance:
        if len(self.there) == 2:
            raise SourceError("no room")
        self.there.append(len(self.there))
        return MigInstance(gpu, self.there[-1], profile, f"MIG-{self.there[-1]}")

    def remove(self, gpu: int, instance: int) -> None:
        if self.busy:
            self.busy -= 1
            raise SourceError("in use")
        self.there.remove(instance)

    def close(self) -> None:
        """Nothing to release."""


def test_instances_go_when_the_workload_fails_and_they_are_still_busy(tmp_path: Path) -> None:
    driver = FakeDriver()

    def work() -> None:
        with hold_instances([[(0, "1g.10gb")], [(0, "1g.10gb")]], tmp_path, driver) as held:
            assert [[instance.uuid for instance in run] for run in held] == [["MIG-0"], ["MIG-1"]]
            assert json.loads((tmp_path / "mig/0.json").read_text())
            driver.busy = 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert driver.there == []
    with pytest.raises(SourceError), hold_instances([[(0, "1g.10gb")]] * 3, tmp_path, driver):
        pytest.fail("three do not fit")
    assert driver.there == []
    assert Journal(tmp_path).read(0) == []


def test_profile_is_known_by_its_name_when_it_is_parsed() -> None:
    assert parse_collocation("3g.20gb").profile == "3g.20gb"
    assert str(parse_collocation("MIG-1g.10gb+me")) == "1g.10gb+me"
    with pytest.raises(ConfigError, match="unknown collocation `3 slices`"):
        parse_collocation("3 slices")
    with pytest.raises(ConfigError, match="switched off on GPU 1"):
        check_profiles([(1, "1g.10gb")], FakeDriver())
