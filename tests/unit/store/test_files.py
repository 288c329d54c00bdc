"""Folders for unfinished work."""

import signal
import subprocess
import sys
from pathlib import Path

from clusterscape.store.files import scratch_folder

HOLD = """
import sys, time
from pathlib import Path
from clusterscape.store.files import scratch_folder
with scratch_folder(Path(sys.argv[1]), "work") as folder:
    (folder / "half").write_text("done")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_folder_goes_when_its_work_is_done(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "work") as folder:
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_only_unused_folders_are_removed_when_a_process_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        held = Path(other.stdout.readline().strip())
        with scratch_folder(tmp_path, "work"), scratch_folder(tmp_path, "else"):
            assert (held / "half").exists(), "somebody is at it"
        other.send_signal(signal.SIGKILL)
        other.wait(30)
    with scratch_folder(tmp_path, "else"):
        assert held.exists(), "another kind of work"
    with scratch_folder(tmp_path, "work") as mine:
        assert [mine] == list(tmp_path.iterdir())
