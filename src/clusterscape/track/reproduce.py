"""What one needs to run it again: command, code, environment, packages, driver and hardware. Secrets are masked."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_SECRET = re.compile(r"TOKEN|SECRET|PASS|PWD$|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|DSN", re.IGNORECASE)
_ADDRESS_SECRET = re.compile(r"(\w+://[^/\s:@]*):[^@/\s]+@")
MASK = "(masked)"
_NOT_SECRET = frozenset({"PWD", "OLDPWD", "KEYBOARD", "XDG_SESSION_TYPE", "DESKTOP_SESSION"})
MOST_DIFF_BYTES = 2 * 2**20
GIT_TIMEOUT_S = 10.0
# The name first: by it runs are compared with their like.
_GPU_FIELDS = (
    "name,uuid,driver_version,vbios_version,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,power.limit,"
    "persistence_mode,compute_mode,mig.mode.current"
)


def describe(cwd: Path, environ: Mapping[str, str], words: Sequence[str]) -> dict[str, object]:
    """All of it; what cannot be found out is None."""
    return {
        "git": describe_git(cwd),
        "command": [mask_address(word) for word in words],
        "cwd": str(cwd),
        "environ": mask(environ),
        "packages": packages(words[0]),
        "system": " ".join(platform.uname()),
        "cpu": cpu_model(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "driver": _ask(["nvidia-smi", f"--query-gpu={_GPU_FIELDS}", "--format=csv"]),
        "topology": _ask(["nvidia-smi", "topo", "-m"]),
    }


def mask(environ: Mapping[str, str]) -> dict[str, str]:
    """Values whose name sounds like a secret are hidden, and passwords in addresses everywhere."""
    return {
        name: MASK if _SECRET.search(name) and name not in _NOT_SECRET else mask_address(value)
        for name, value in sorted(environ.items())
    }


def mask_address(text: str) -> str:
    """``postgresql://me:secret@host`` without its password."""
    return _ADDRESS_SECRET.sub(rf"\1:{MASK}@", text)


def describe_git(cwd: Path) -> dict[str, object] | None:
    """Commit, branch and what differs from it; None outside a repository."""
    commit = _ask(["git", "-C", str(cwd), "rev-parse", "HEAD"])
    if commit is None:
        return None
    diff = _ask(["git", "-C", str(cwd), "diff", "HEAD", "--no-ext-diff", "--no-color"]) or ""
    return {
        "commit": commit.strip(),
        "branch": (_ask(["git", "-C", str(cwd), "rev-parse", "--abbrev-ref", "HEAD"]) or "").strip() or None,
        "remote": mask_address((_ask(["git", "-C", str(cwd), "remote", "get-url", "origin"]) or "").strip()) or None,
        "is_dirty": bool(diff.strip()),
        "diff": diff[:MOST_DIFF_BYTES],
        "is_diff_cut": len(diff) > MOST_DIFF_BYTES,
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
