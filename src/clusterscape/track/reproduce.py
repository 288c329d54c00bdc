"""What one needs to run it again: command, code, allowed variables, packages, driver and hardware. Secrets are masked."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterscape.track.recorded_variables import RECORDED_VARIABLES, select
from clusterscape.track.redaction import Redactor

MOST_DIFF_BYTES = 2 * 2**20
GIT_TIMEOUT_S = 10.0
# The name first: by it runs are compared with their like.
_GPU_FIELDS = (
    "name,uuid,driver_version,vbios_version,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,power.limit,"
    "persistence_mode,compute_mode,mig.mode.current"
)


def describe(
    cwd: Path, environ: Mapping[str, str], words: Sequence[str], patterns: Sequence[str] = RECORDED_VARIABLES
) -> dict[str, object]:
    """All of it, masked; what cannot be found out is None. ``patterns`` say which variables are recorded."""
    description = {
        "git": describe_git(cwd),
        "command": list(words),
        "cwd": str(cwd),
        "environ": select(environ, patterns),
        "environ_patterns": list(patterns),
        "packages": packages(words[0]),
        "system": " ".join(platform.uname()),
        "cpu": cpu_model(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "driver": _ask(["nvidia-smi", f"--query-gpu={_GPU_FIELDS}", "--format=csv"]),
        "topology": _ask(["nvidia-smi", "topo", "-m"]),
    }
    return Redactor(environ, words).fields(description)


def describe_git(cwd: Path) -> dict[str, object] | None:
    """Commit, branch and what differs from it, not masked yet; None outside a repository."""
    commit = _ask(["git", "-C", str(cwd), "rev-parse", "HEAD"])
    if commit is None:
        return None
    diff = _ask(["git", "-C", str(cwd), "diff", "HEAD", "--no-ext-diff", "--no-color"]) or ""
    is_cut = len(diff) > MOST_DIFF_BYTES
    return {
        "commit": commit.strip(),
        "branch": (_ask(["git", "-C", str(cwd), "rev-parse", "--abbrev-ref", "HEAD"]) or "").strip() or None,
        "remote": (_ask(["git", "-C", str(cwd), "remote", "get-url", "origin"]) or "").strip() or None,
        "is_dirty": bool(diff.strip()),
        # Cut between lines: half a secret has no shape to be masked by.
        "diff": diff[: diff.rfind("\n", 0, MOST_DIFF_BYTES) + 1] if is_cut else diff,
        "is_diff_cut": is_cut,
        "untracked": (_ask(["git", "-C", str(cwd), "ls-files", "--others", "--exclude-standard"]) or "").splitlines()[
            :200
        ],
    }


def packages(program: str) -> dict[str, str] | None:
    """Distributions of the Python that runs the script, by name; None where it runs something else."""
    if "python" not in Path(program).name:
        return None
    if program == sys.executable:
        folders = sys.path
    else:
        folders = (_ask([program, "-c", "import sys; print(*sys.path, sep='\\n')"]) or "").splitlines()
    found: dict[str, str] = {}
    for folder in filter(os.path.isdir, folders):
        for entry in os.listdir(folder):  # noqa: PTH208 – reading each one's metadata costs a thousand times more
            if entry.endswith(".dist-info"):
                name, _, version = entry.removesuffix(".dist-info").partition("-")
                found.setdefault(name, version)
    return dict(sorted(found.items()))


def cpu_model() -> str | None:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return None


def _ask(words: list[str]) -> str | None:
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=GIT_TIMEOUT_S, env=environ, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
