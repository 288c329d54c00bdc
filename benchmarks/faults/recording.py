"""Runs the ranks of recorded cases and writes one JSON per case: setup, fault, episodes, truth, files."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.kinds import BY_NAME, FORMAT, LICENCE, Case

MIN_FINDABLE = 0.02
"""Share of the step that a fault must cost to be findable."""


def record_cases(cases: Sequence[Case], folder: Path, seconds: float) -> int:
    """Record the cases that are not there yet, until the time is over. Returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [case for case in cases if not (folder / f"{case.case_id}.json").exists()]
    if not missing:
        return 0
    ranks = missing[0].ranks
    with tempfile.TemporaryDirectory() as scratch:
        plan = Path(scratch, "cases.json")
        plan.write_text(json.dumps([case.describe() for case in missing]))
        command = [sys.executable, "-m", "benchmarks.faults.training", str(plan)]
        environment = os.environ | {"KINETO_LOG_LEVEL": "5", "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), str(Path(scratch, "store")), scratch, str(seconds)], env=environment
            )
            for rank in range(ranks)
        ]
        done: set[str] = set()
        while True:
            is_over = all(process.poll() is not None for process in processes)
            for case in missing:
                truths = sorted(Path(scratch).glob(f"{case.case_id}-rank*.truth.json"))
                if case.case_id not in done and len(truths) == ranks:
                    write_case(case, [json.loads(path.read_text()) for path in truths], Path(scratch), folder)
                    done.add(case.case_id)
            if is_over:
                break
            time.sleep(1.0)
        if any(process.returncode for process in processes):
            print("ranks ended with", [process.returncode for process in processes], file=sys.stderr)
    return len(done)


def write_case(case: Case, truths: Sequence[dict[str, Any]], scratch: Path, folder: Path) -> None:
    """Move the traces of a case into the folder and write its JSON."""
    files = []
    for truth in truths:
        data = (scratch / truth["trace"]).read_bytes()
        (scratch / truth["trace"]).unlink()
        (folder / truth["trace"]).write_bytes(data)
        files.append({"path": truth["trace"], "format": "kineto", "sha256": hashlib.sha256(data).hexdigest()})
    episodes = [episode for truth in truths for episode in truth["episodes"]]
    import torch

    setup = {
        "world_size": case.ranks, "backend": "gloo", "device": "cuda" if torch.cuda.is_available() else "cpu",
        "torch": str(torch.__version__), "machine": platform.machine(), "cores": os.cpu_count(), "seed": case.seed,
        "steps": case.steps, "usual_s": float(truths[0]["usual_s"]),
    }  # fmt: skip
    document = describe_case(case, setup, episodes, files)
    (folder / f"{case.case_id}.json").write_text(json.dumps(document, indent=1) + "\n")


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
