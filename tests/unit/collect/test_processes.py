import os
import pwd
import subprocess
import time
from pathlib import Path

from clusterscape.collect.processes import Process, read_process


def test_user_command_and_start_are_told_when_a_process_runs() -> None:
    before_ms = time.time_ns() // 1_000_000
    command = ["/bin/sh", "-c", "echo up; read answer"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = read_process(child.pid)
    assert found.command == "sh -c echo up; read answer"
    assert found.user == pwd.getpwuid(os.geteuid()).pw_name
    assert found.started_at is not None
    assert abs(found.started_at - before_ms) < 10_000  # the kernel knows its boot time to the second


def test_nothing_but_the_number_is_known_when_the_process_is_gone() -> None:
    assert read_process(2**22 + 1) == Process(pid=2**22 + 1)


def test_the_name_stands_for_the_command_when_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"")
    (folder / "comm").write_text("kworker\n")
    (folder / "stat").write_text("7 (odd) name) S damaged")
    found = read_process(7, tmp_path)
    assert found.command == "[kworker]"
    assert found.started_at is None


def test_the_start_is_counted_from_boot_when_the_name_has_brackets(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"/usr/bin/python3\0train.py\0--name\0caf\xe9\0")
    (folder / "stat").write_text(f"7 (a) (b c) S {'0 ' * 18}{250 * os.sysconf('SC_CLK_TCK')} 0")
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1700000000\n")
    found = read_process(7, tmp_path)
    assert found.started_at == 1_700_000_250_000
    assert found.command == "python3 train.py --name caf\ufffd"
