"""Names in MLflow: metrics in its ``system/`` naming, states, and valid names. Pure."""

import re

_FORBIDDEN = re.compile(r"[^\w\-. /:]")
_MEGABYTE = 1e-6
_PERCENT = 100.0
MOST_NAME = 250
MOST_PARAM_VALUE = 6000
MOST_TAG_VALUE = 5000

# MLflow draws these with its own system metrics: name after gpu_N, and the factor to its unit.
_GPU = {
    "gpu_util_ratio": ("utilization_percentage", _PERCENT),
    "memory_used_bytes": ("memory_usage_megabytes", _MEGABYTE),
    "power_watts": ("power_usage_watts", 1.0),
}
STATUS = {
    "completed": "FINISHED",
    "cancelled": "KILLED",
    "running": "RUNNING",
    "waiting": "SCHEDULED",
}


def status_of(state: str) -> str:
    """MLflow's status of an ended run."""
    return STATUS.get(state, "FAILED")


def metric_of(name: str, unit: str | None, scope: str, *, run: str) -> tuple[str, float]:
    """MLflow's name of a series, and the factor to its unit. Metrics that the script logged keep their names."""
    if scope == "run":
        return clean(name), 1.0
    if unit is None or scope == "host":
        metric, factor = (
            (f"{name.removesuffix('_bytes')}_megabytes", _MEGABYTE) if name.endswith("_bytes") else (name, 1.0)
        )
        return clean(f"system/{metric}"), factor
    place = unit.removeprefix(f"run:{run}/")
    is_own = place != unit
    index = place.rpartition(":")[2]
    if index.isdigit():
        metric, factor = _GPU.get(name, (name, 1.0))
        own = "run_" if is_own else ""  # the run's share of a GPU that others may also use
        return clean(f"system/gpu_{index}_{own}{metric}"), factor
    return clean(f"system/{place.rpartition('/')[2]}_{name}"), 1.0


def clean(name: str) -> str:
    """The name without characters that MLflow rejects."""
    return _FORBIDDEN.sub("_", name).strip("/ ")[:MOST_NAME] or "_"
