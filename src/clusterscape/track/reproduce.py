"""Records what is needed to repeat a run: command, code, packages, driver, hardware, and environment variables that affect
training. Secrets are masked.

Values of allowed variables are also masked if they are secrets (``redaction.py``).
"""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from clusterscape.track.redaction import Redactor

PATTERNS_VARIABLE = "CLUSTERSCAPE_RECORD_ENV"
NOTHING = "none"

RECORDED_VARIABLES: tuple[str, ...] = (
    *("CUDA_*", "NVIDIA_*", "NCCL_*", "CUBLAS_*", "CUDNN_*", "NVTE_*", "TRITON_*"),
    *("ROCR_*", "HIP_*", "HSA_*", "RCCL_*"),
    *("TORCH_*", "TORCHELASTIC_*", "TORCHINDUCTOR_*", "PYTORCH_*", "XLA_*", "JAX_*"),
    # Not TF_*: Terraform keeps credentials there.
    *("TF_CPP_*", "TF_GPU_*", "TF_ENABLE_*", "TF_FORCE_*", "TF_NUM_*", "TF_XLA_FLAGS", "TF_DETERMINISTIC_OPS"),
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "NUMEXPR_*", "NUMBA_*", "MALLOC_*"),
    *("UCX_*", "FI_*", "OMPI_COMM_WORLD_*", "PMI_RANK", "PMI_SIZE", "GLOO_*"),
    *("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "ROLE_RANK"),
    *("MASTER_ADDR", "MASTER_PORT"),
    *("SLURM_JOB_*", "SLURM_JOBID", "SLURM_ARRAY_*", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME", "SLURM_NODELIST"),
    *("SLURM_NNODES", "SLURM_NTASKS*", "SLURM_TASKS_PER_NODE", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"),
    *("SLURM_CPUS_*", "SLURM_GPUS*", "SLURM_MEM_*", "SLURM_CPU_BIND*", "SLURM_GPU_BIND*", "SLURM_SUBMIT_DIR"),
    *("PYTHON*", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "LOADEDMODULES"),
    *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"),
    *(
        "HF_HOME",
        "HF_*_CACHE",
        "HF_*_OFFLINE",
        "TRANSFORMERS_*",
        "DATASETS_*",
        "TOKENIZERS_PARALLELISM",
        "XDG_CACHE_HOME",
    ),
    *("LANG", "LC_*", "TZ"),
)
"""Shell patterns; the last matching pattern decides, and ``!PATTERN`` excludes names."""


def parse_patterns(choices: Sequence[str], environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The default list with ``CLUSTERSCAPE_RECORD_ENV`` and ``choices`` appended; ``none`` starts with an empty list."""
    patterns = RECORDED_VARIABLES
    for choice in (environ.get(PATTERNS_VARIABLE, ""), *choices):
        for word in filter(None, map(str.strip, choice.split(","))):
            patterns = () if word.lower() == NOTHING else (*patterns, word)
    return patterns


def is_recorded(name: str, patterns: Sequence[str]) -> bool:
    """Whether the last matching pattern includes the variable."""
    for pattern in reversed(patterns):
        if fnmatchcase(name, pattern.removeprefix("!")):
            return not pattern.startswith("!")
    return False


def select_variables(environ: Mapping[str, str], patterns: Sequence[str] = RECORDED_VARIABLES) -> dict[str, str]:
    """The variables that are recorded, by name."""
    return {name: value for name, value in sorted(environ.items()) if is_recorded(name, patterns)}


MOST_DIFF_BYTES = 2 * 2**20
GIT_TIMEOUT_S = 10.0
# The name comes first: runs are grouped by it.
_GPU_FIELDS = (
    "name,uuid,driver_version,vbios_version,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,power.limit,"
    "persistence_mode,compute_mode,mig.mode.current"
)


def describe(
    cwd: Path, environ: Mapping[str, str], words: Sequence[str], patterns: Sequence[str] = RECORDED_VARIABLES
) -> dict[str, object]:
    """The complete description, masked; unknown values are None. ``patterns``: which variables are recorded."""
    description = {
        "git": describe_git(cwd),
        "command": list(words),
        "cwd": str(cwd),
        "environ": select_variables(environ, patterns),
        "environ_patterns": list(patterns),
        "packages": packages(words[0]),
        "system": " ".join(platform.uname()),
        "cpu": cpu_model(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "driver": _run_command(["nvidia-smi", f"--query-gpu={_GPU_FIELDS}", "--format=csv"]),
        "topology": _run_command(["nvidia-smi", "topo", "-m"]),
    }
    return Redactor(environ, words).fields(description)


def describe_git(cwd: Path) -> dict[str, object] | None:
    """Commit, branch and uncommitted changes, not masked yet; None outside a repository."""
    commit = _run_command(["git", "-C", str(cwd), "rev-parse", "HEAD"])
    if commit is None:
        return None
    diff = _run_command(["git", "-C", str(cwd), "diff", "HEAD", "--no-ext-diff", "--no-color"]) or ""
    is_cut = len(diff) > MOST_DIFF_BYTES
    return {
        "commit": commit.strip(),
        "branch": (_run_command(["git", "-C", str(cwd), "rev-parse", "--abbrev-ref", "HEAD"]) or "").strip() or None,
        "remote": (_run_command(["git", "-C", str(cwd), "remote", "get-url", "origin"]) or "").strip() or None,
        "is_dirty": bool(diff.strip()),
        # Truncated between lines: a truncated secret would not be recognized.
        "diff": diff[: diff.rfind("\n", 0, MOST_DIFF_BYTES) + 1] if is_cut else diff,
        "is_diff_cut": is_cut,
        "untracked": (
            _run_command(["git", "-C", str(cwd), "ls-files", "--others", "--exclude-standard"]) or ""
        ).splitlines()[:200],
    }


def packages(program: str) -> dict[str, str] | None:
    """Installed distributions of the script's Python, by name; None if the command is not a Python script."""
    if "python" not in Path(program).name:
        return None
    if program == sys.executable:
        folders = sys.path
    else:
        folders = (_run_command([program, "-c", "import sys; print(*sys.path, sep='\\n')"]) or "").splitlines()
    versions: dict[str, str] = {}
    for folder in filter(os.path.isdir, folders):
        for entry in os.listdir(folder):  # noqa: PTH208 – reading each one's metadata costs a thousand times more
            if entry.endswith(".dist-info"):
                name, _, version = entry.removesuffix(".dist-info").partition("-")
                versions.setdefault(name, version)
    return dict(sorted(versions.items()))


def cpu_model() -> str | None:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return None


def _run_command(words: list[str]) -> str | None:
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=GIT_TIMEOUT_S, env=environ, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
