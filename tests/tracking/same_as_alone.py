"""Real training scripts run alone and under ``clusterscape run``: what is compared, and how it is made comparable."""

import re
import resource
import sqlite3
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tracking.command import Command

SCRIPTS = Path(__file__).parents[1] / "data/training"
# What differs between any two executions: times, ids, names that MLflow draws, the folder.
_TIMED = re.compile(r"time|runtime|per_second|std_|rank_test_score")
_VARYING = re.compile(
    r"m-[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}|\d{4}-\d\d-\d\d[T ][\d:.]+|\b[a-z]+-[a-z]+-\d+\b"
)
_TABLES = {
    "experiments": "SELECT name, lifecycle_stage FROM experiments",
    "runs": "SELECT e.name, r.status FROM runs r JOIN experiments e USING (experiment_id)",
    "metrics": "SELECT key, step, is_nan, value FROM metrics",
    "params": "SELECT key, value FROM params",
    "tags": "SELECT key, value FROM tags WHERE key NOT IN ('mlflow.runName', 'mlflow.parentRunId')",
    "models": "SELECT name, status, model_type FROM logged_models",
    "versions": "SELECT name, version FROM model_versions",
}


@dataclass(frozen=True)
class Execution:
    """One execution of a script."""

    exit_code: int
    output: str
    files: list[str]
    content: dict[str, list[str]]  # of its MLflow, by table
    wall_s: float
    cpu_s: float


def run_alone(command: Command, python: Path, script: str) -> Execution:
    """Run a script by its Python."""
    return _execute([str(python), script], command)


def run_tracked(command: Command, python: Path, script: str) -> Execution:
    """Run a script under the command."""
    return _execute(command.words("run", "--quiet", "-l", "none", "--", str(python), script), command)


def _execute(words: list[str], command: Command) -> Execution:
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        words, cwd=command.folder, env=command.environ, capture_output=True, text=True, timeout=command.deadline_s
    )
    wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Execution(
        exit_code=done.returncode,
        output=done.stdout,
        files=sorted(_comparable(str(path.relative_to(command.folder)), command) for path in _files(command.folder)),
        content=_content(command),
        wall_s=wall_s,
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def _content(command: Command) -> dict[str, list[str]]:
    database = command.folder / "mlflow.db"
    if not database.exists():
        return {}
    with sqlite3.connect(database) as sql:
        return {
            # Once each: MLflow itself keeps equal values of one metric only once if they are of the same millisecond.
            table: sorted({_comparable(_row(table, row), command) for row in sql.execute(question)})
            for table, question in _TABLES.items()
        }


def _row(table: str, row: tuple[object, ...]) -> str:
    if table == "metrics" and _TIMED.search(str(row[0])):
        row = row[:-1]
    if row[0] == "mlflow.log-model.history":  # holds sizes and times
        row = row[:1]
    return " ".join(map(str, row))


def _comparable(text: str, command: Command) -> str:
    return _VARYING.sub("*", text.replace(str(command.folder), "FOLDER"))
