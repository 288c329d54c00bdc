"""What ``sacct --json`` prints, in the shapes of Slurm 21.08 to 24.11 (numbers and states drift between them)."""

import polars as pl

from clusterscape.collect.job_traces import statuses
from clusterscape.collect.job_traces.cleaning import Cleaner
from clusterscape.collect.job_traces.json_objects import iter_row_batches
from clusterscape.collect.job_traces.text import TraceSource
from clusterscape.collect.slurm.values import as_list, as_object, read_int, read_text, read_words
from clusterscape.model.jobs import JobTrace


def is_sacct_json(start: str) -> bool:
    """Whether a file that begins like this is sacct's JSON."""
    return start.lstrip().startswith("{") and '"jobs"' in start


def read_sacct_json(source: TraceSource, name: str) -> JobTrace:
    """``line`` counts jobs, since one job is many lines."""
    cleaner = Cleaner(statuses.SLURM)
    for rows in iter_row_batches(source, "jobs", _to_row):
        _add(rows, cleaner)
    return cleaner.finish(name, "sacct-json", "gpus" if cleaner.share_with("gpus") > 0.5 else "processors")


def _add(rows: list[dict[str, object]], cleaner: Cleaner) -> None:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    active = pl.col("status").cast(pl.String).str.to_lowercase().is_in(list(statuses.SLURM_ACTIVE))
    cleaner.add(cleaner.notes.drop("the job has not ended", frame, active))


def _to_row(place: int, job: dict[str, object]) -> dict[str, object]:
    time = as_object(job.get("time"))
    submit, start = read_int(time.get("submission")), read_int(time.get("start"))
    state = job.get("state")
    words = read_words(as_object(state).get("current") if isinstance(state, dict) else state)
    minutes = read_int(time.get("limit"))
    counts = _counts(as_list(as_object(job.get("tres")).get("allocated")))
    counts = counts or _counts(as_list(as_object(job.get("tres")).get("requested")))
    required = as_object(job.get("required"))
    number = read_int(job.get("job_id"))
    return {
        "line": place,
        "job_id": None if number is None else str(number),
        "user": read_text(job.get("user")),
        "project": read_text(job.get("account")),
        "queue": read_text(job.get("partition")),
        "submit_s": _float(submit),
        "wait_s": _float(start - submit) if start and submit is not None else None,
        "run_s": _float(read_int(time.get("elapsed"))) if start else None,
        "processors": _float(counts.get("cpu", read_int(required.get("CPUs")))),
        "gpus": _float(counts.get("gpu", 0)),
        "nodes": _float(counts.get("node", read_int(job.get("allocation_nodes")))),
        "requested_s": None if minutes is None else float(minutes * 60),
        "status": words[0] if words else None,
    }


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _counts(entries: list[object]) -> dict[str, int]:
    """cpu, node and gpu of a TRES list; typed GPUs (``gpu:a100``) count only where the sum is not stated."""
    found: dict[str, int] = {}
    typed = 0
    for entry in entries:
        tres = as_object(entry)
        kind, name, count = tres.get("type"), tres.get("name"), read_int(tres.get("count"))
        if count is None:
            continue
        if kind == "gres" and isinstance(name, str) and name.startswith("gpu"):
            if name == "gpu":
                found["gpu"] = count
            else:
                typed += count
        elif kind in ("cpu", "node"):
            found[str(kind)] = count
    if typed and "gpu" not in found:
        found["gpu"] = typed
    return found
