"""Which environment variables a run records: an allow-list of what changes how a training runs. Everything else is left out.

Allowed values are masked all the same (``redaction.py``).
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

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
"""Patterns as a shell has them; the last that matches a name decides, and ``!PATTERN`` leaves names out."""


def parse_patterns(choices: Sequence[str], environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The default list with ``CLUSTERSCAPE_RECORD_ENV`` and ``choices`` behind it; ``none`` begins with an empty list."""
    patterns = RECORDED_VARIABLES
    for choice in (environ.get(PATTERNS_VARIABLE, ""), *choices):
        for word in filter(None, map(str.strip, choice.split(","))):
            patterns = () if word.lower() == NOTHING else (*patterns, word)
    return patterns


def is_recorded(name: str, patterns: Sequence[str]) -> bool:
    """Whether the last pattern that matches allows it."""
    for pattern in reversed(patterns):
        if fnmatchcase(name, pattern.removeprefix("!")):
            return not pattern.startswith("!")
    return False


def select(environ: Mapping[str, str], patterns: Sequence[str] = RECORDED_VARIABLES) -> dict[str, str]:
    """The variables that are recorded, by name."""
    return {name: value for name, value in sorted(environ.items()) if is_recorded(name, patterns)}
