"""The documents that a run is stored as, and what is shown instead of one that is damaged. Readers and writers share this.

Lenient: fields that are not named here are left alone, and those of earlier versions may be missing.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

RUN_KIND = "run"
"""Kind of the small documents that lists of runs are made of."""
DETAIL_KIND = "run-detail"
"""Kind of the documents with everything else of a run but its samples."""
NAMES_KIND = "run-names"
"""Kind of the documents with the names of metrics that each user's runs have."""
DELETED_KIND = "run-deleted"
"""Kind of the documents that remember which runs were deleted."""

_Figures = tuple[str | None, str | None, int, float, float, float, float, float, int, int]


class _About(Struct):
    run: str | None = None
    name: str | None = None
    experiment: str | None = None
    workload: str | None = None
    letter: str | None = None
    user: str | None = None
    host: str | None = None
    command: list[str] | None = None
    cwd: str | None = None
    devices: list[str] | None = None
    collocation: str | None = None
    queued_at: int | None = None
    listeners: list[str] | None = None


class _End(Struct):
    state: str | None = None
    cause: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None


class _Energy(Struct, forbid_unknown_fields=True):
    joules: float
    scope: str
    method: str


class _Work(Struct, forbid_unknown_fields=True):
    unit: str
    basis: str
    amount: float | None
    per_second: float | None


class _RunFigures(Struct):
    energy: _Energy | None = None
    work: _Work | None = None
    cpu_joules: float | None = None
    gpu_util_ratio: float | None = None
    power_watts: float | None = None
    memory_peak_bytes: float | None = None
    cpu_cores: float | None = None
    process_memory_peak_bytes: float | None = None
    results: dict[str, float] | None = None


class _Listed(Struct):
    about: _About
    params: dict[str, str]
    tags: dict[str, str]
    moments: dict[str, int]
    end: _End
    samples: int
    not_finite: int
    dropped: int
    damaged: int = 0
    owned_by: str | None = None
    received_at: int | None = None
    bytes: int = 0
    series_count: int = 0
    device_type: str | None = None
    figures: _RunFigures | None = None


class _Mark(Struct):
    kind: str | None = None
    name: str | None = None
    at: int | None = None


class _File(Struct):
    offset: int
    rank: int | None = None
    series: dict[str, tuple[str, str]] = {}


class _Detail(Struct):
    series: dict[str, _Figures] = {}
    steps: tuple[int, int, int, int] | None = None
    marks: list[_Mark] = []
    listeners: dict[str, dict[str, Any]] = {}
    environment: dict[str, Any] = {}
    exceptions: list[str | None] = []
    leftovers: int = 0
    holds: dict[str, str] = {}
    files: dict[str, _File] = {}
    left_out: dict[str, int] = {}


def find_damage(kind: str, body: object) -> str | None:
    """What is wrong with a stored document of a run; None: nothing."""
    try:
        msgspec.convert(body, _Listed if kind == RUN_KIND else _Detail)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def readable(kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document as it is, or one that says that it is damaged."""
    damage = find_damage(kind, body)
    if damage is None:
        return body
    if kind != RUN_KIND:
        return {"series": {}, "marks": [], "listeners": {}, "environment": {}, "exceptions": []}
    return {
        "owned_by": owner_of(body),
        "about": {},
        "params": {},
        "tags": {},
        "moments": {},
        "end": {"state": "unknown", "cause": f"its stored record is damaged: {damage}"},
        "samples": 0,
        "not_finite": 0,
        "dropped": 0,
    }


def owner_of(body: Mapping[str, Any]) -> str | None:
    """Whose run it is; of one stored before runs had owners of their own, the user that it names."""
    about = body.get("about")
    owner = body["owned_by"] if "owned_by" in body else about.get("user") if isinstance(about, Mapping) else None
    return owner if isinstance(owner, str) else None
