"""Other versions of real servers, each in a root folder of its own that is made once of another suite of Debian's packages."""

import fcntl
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from servers.programs import need_program

FOLDER = Path(__file__).parents[2] / "build" / "roots"
SLURM_PACKAGES = "slurmctld,slurmd,slurm-client,slurmdbd,slurmrestd,munge,slurm-wlm-mysql-plugin,slurm-wlm-jwt-plugin"
SUITES = {"24.11": "trixie", "26.05": "sid"}
"""Of which suite a version of Slurm is."""


def slurm_root(version: str) -> Path:
    """The folder with a Slurm of this version; made where it is not there yet, which takes half a minute."""
    need_program("mmdebstrap", "mmdebstrap")
    FOLDER.mkdir(parents=True, exist_ok=True)
    root = FOLDER / f"slurm-{version}"
    with (FOLDER / f"slurm-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in parallel
        if not (root / "usr/sbin/slurmctld").exists():
            _make_root(root, SUITES[version], SLURM_PACKAGES)
    return root


def enter(root: Path, *, user: str | None = None) -> tuple[str, ...]:
    """What a command is started through to run within the root, under the host name localhost, with our /tmp."""
    mounts = " && ".join(f'mount --rbind /{name} "{root}/{name}"' for name in ("proc", "dev", "tmp"))
    chroot = f'chroot {f"--userspec={user} " if user else ""}"{root}"'
    # chroot begins at the top of the root; of our folders only those below /tmp are there, too.
    inside = """sh -c 'cd "$0" 2>/dev/null; exec "$@"' "$PWD" "$@\""""
    script = f"hostname localhost && {mounts} && exec {chroot} {inside}"
    return ("unshare", "--mount", "--uts", "--", "sh", "-c", script, "sh")


def write_commands(folder: Path, root: Path, names: tuple[str, ...]) -> None:
    """Programs of the root as commands of a folder on this side, for programs that search the PATH."""
    folder.mkdir()
    prefix = " ".join(f"'{word.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'" for word in enter(root))
    for name in names:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {prefix} /usr/bin/{name} "$@"\n')
        path.chmod(0o755)


def _make_root(root: Path, suite: str, packages: str) -> None:
    shutil.rmtree(root, ignore_errors=True)
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {codename}"]
    mirrors = subprocess.run(targets, capture_output=True, text=True, check=True).stdout.split()
    unfinished = root.with_name(f"{root.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = ["mmdebstrap", "--quiet", "--variant=apt", '--aptopt=Acquire::Check-Valid-Until "false"']
    done = subprocess.run(
        [*command, f"--include={packages}", suite, str(unfinished), mirrors[0]],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        problem = f"a root folder of {suite} could not be made: {done.stderr[-500:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(problem)
        pytest.skip(problem)
    (unfinished / "etc/hosts").write_text("127.0.0.1 localhost\n")
    unfinished.rename(root)
