"""Runs the ranks of recorded cases and writes one JSON per case: setup, fault, episodes, truth, files."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.kinds import BY_NAME, FORMAT, LICENCE, Case
from benchmarks.faults.telemetry import PERIOD_S, Telemetry

MIN_FINDABLE = 0.02
"""Share of the step that a fault must cost to be findable."""
GRACE_S = 25.0
"""After the time for cases is over, until the ranks are ended."""
ENDING_S = 10.0
LOOK_S = 0.5


def record_cases(
    cases: Sequence[Case], folder: Path, seconds: float, on_case: Callable[[Path], bool] | None = None
) -> int:
    """Record the cases that are not there yet, until the time is over. Returns how many.

    ``on_case``: called with the JSON of each recorded case; recording ends if it says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [case for case in cases if not (folder / f"{case.case_id}.json").exists()]
    if not missing:
        return 0
    ranks = missing[0].ranks
    until = time.monotonic() + seconds + GRACE_S
    with tempfile.TemporaryDirectory() as scratch:
        plan = Path(scratch, "cases.json")
        plan.write_text(json.dumps([case.describe() for case in missing]))
        command = [sys.executable, "-m", "benchmarks.faults.training", str(plan)]
        sources = str(Path(__file__).parents[2] / "src")  # on a machine where only torch is installed
        environment = os.environ | {"KINETO_LOG_LEVEL": "5", "OMP_NUM_THREADS": "1", "PYTHONPATH": sources}
        processes = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), str(Path(scratch, "store")), scratch, str(seconds)], env=environment
            )
            for rank in range(ranks)
        ]
        telemetry = Telemetry([process.pid for process in processes])
        done: set[str] = set()
        looked = 0.0
        while True:
            is_over = any(process.poll() is not None for process in processes) or time.monotonic() > until
            telemetry.sample()
            if is_over or time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                for case in missing:
                    if case.case_id in done:
                        continue
                    truths = [Path(scratch, f"{case.case_id}-rank{rank}.truth.json") for rank in range(ranks)]
                    if not all(path.exists() for path in truths):
                        break
                    done.add(case.case_id)
                    written = write_case(
                        case, [json.loads(path.read_text()) for path in truths], telemetry, Path(scratch), folder
                    )
                    if on_case is not None and on_case(written):
                        is_over = True
            if is_over:
                break
            time.sleep(PERIOD_S)
        codes = _end(processes)
        if any(codes):
            print("ranks ended with", codes, file=sys.stderr)
    return len(done)


def _end(processes: Sequence["subprocess.Popen[bytes]"]) -> list[int]:
    """Wait a moment for the ranks, then end them."""
    codes = []
    until = time.monotonic() + ENDING_S
    for process in processes:
        try:
            codes.append(process.wait(max(0.1, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            process.kill()
            codes.append(process.wait())
    return codes


def write_case(case: Case, truths: Sequence[dict[str, Any]], telemetry: Telemetry, scratch: Path, folder: Path) -> Path:
    """Move the traces of a case into the folder, with what the scheduler and the machine say, and write its JSON."""
    files = []

    def add(name: str, form: str, data: bytes) -> None:
        (folder / name).write_bytes(data)
        files.append({"path": name, "format": form, "sha256": hashlib.sha256(data).hexdigest()})

    for truth in truths:
        path = scratch / truth["trace"]
        add(truth["trace"], "kineto", path.read_bytes())
        path.unlink()
        capture = {
            "schema": "clusterscape_capture", "version": 1, "rank": truth["rank"], "world_size": case.ranks,
            "backend": "gloo", "trace": truth["trace"], "steps": truth["scheduled"],
        }  # fmt: skip
        add(f"{case.case_id}-rank{truth['rank']}.capture.json", "capture", json.dumps(capture).encode())
    window = min(truth["begin_ns"] for truth in truths), max(truth["end_ns"] for truth in truths)
    add(f"{case.case_id}-rank.telemetry.json", "telemetry", json.dumps(telemetry.take(*window)).encode())
    episodes = [episode for truth in truths for episode in truth["episodes"]]
    import torch

    setup = {
        "world_size": case.ranks, "backend": "gloo", "device": "cuda" if torch.cuda.is_available() else "cpu",
        "torch": str(torch.__version__), "machine": platform.machine(), "cores": os.cpu_count(), "seed": case.seed,
        "steps": case.steps, "usual_s": float(truths[0]["usual_s"]), "load_average": os.getloadavg()[0],
        "core_wait_ratio": _find_core_wait(truths),
    }  # fmt: skip
    document = describe_case(case, setup, episodes, files)
    path = folder / f"{case.case_id}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _find_core_wait(truths: Sequence[dict[str, Any]]) -> float | None:
    """Share of their time that the training threads were ready to run without a core; None if the kernel does not count it."""
    steps = [step for truth in truths for step in truth["scheduled"] if "core_wait_s" in step]
    return sum(step["core_wait_s"] for step in steps) / sum(step["time_s"] for step in steps) if steps else None


def describe_case(
    case: Case, setup: dict[str, Any], episodes: Sequence[dict[str, Any]], files: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The document of a case. Truth: seconds per affected step and per step as the injector measured them."""
    kind = None if case.kind is None else BY_NAME[case.kind]
    per_step: dict[int, float] = {}
    for episode in episodes:
        length_s = (episode["end_ns"] - episode["begin_ns"]) / 1e9
        per_step[episode["step"]] = max(per_step.get(episode["step"], 0.0), length_s)
    has_seconds = kind is not None and kind.has_seconds and case.kind != "throttled" and bool(per_step)
    mean_s = sum(per_step.values()) / case.steps if has_seconds else None
    truth: dict[str, Any] | None = None
    if kind is not None:
        truth = {
            "root_kind": kind.name,
            "root_ranks": [] if case.rank is None else [case.rank],
            "seconds_per_step": mean_s,
            "seconds_per_affected_step": sum(per_step.values()) / len(per_step) if has_seconds else None,
            "affected_steps": sorted(per_step) or list(case.steps_with_fault),
            "step_share": len(case.steps_with_fault) / case.steps,
            "is_findable": mean_s is None or mean_s > MIN_FINDABLE * setup["usual_s"],
            "is_hang": False,
        }
    return {
        "id": case.case_id,
        "format": FORMAT,
        "licence": LICENCE,
        "source": case.source,
        "is_held_back": case.is_held_back,
        "setup": setup,
        "fault": None if kind is None else case.describe() | {"is_rank_specific": kind.is_of_rank},
        "episodes": list(episodes),
        "truth": truth,
        "twin": case.twin,
        "files": list(files),
        "accept": None if kind is None else {"kinds": list(kind.accept), "seconds_tolerance_ratio": 0.2},
    }
