"""Fails after some steps, with an exit code of its own; its MLflow run stays failed."""

import sys
from pathlib import Path

import mlflow

with mlflow.start_run():
    mlflow.log_metric("loss", 0.5, step=3)
    Path("partial.txt").write_text("half")
    sys.exit(3)
