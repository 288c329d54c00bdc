"""Job traces made up for tests: planted answers, no file behind them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from clusterscape.model.jobs import JOB_COLUMNS, JobTrace, SizeUnit

MONDAY_S = 1_704_067_200  # 2024-01-01 00:00 UTC


def make_trace(
    *,
    submit_s: Iterable[Any],
    name: str = "made-up",
    size_unit: SizeUnit = "gpus",
    total: int | None = None,
    **columns: Any,
) -> JobTrace:
    """A trace of these columns; what is not given is null, sizes are 1 and statuses unknown."""
    moments = list(submit_s)
    count = len(moments)
    data: dict[str, Any] = {column: [None] * count for column in JOB_COLUMNS}
    data |= {"line": list(range(1, count + 1)), "submit_s": moments, "status": ["unknown"] * count}
    data[size_unit] = [1] * count
    data |= {size_unit if key == "size" else key: list(value) for key, value in columns.items()}
    frame = pl.DataFrame(data, schema=JOB_COLUMNS, strict=False).sort("submit_s", maintain_order=True)
    return JobTrace(name, "made-up", frame, size_unit, total)


def random_trace(
    jobs: int = 600,
    *,
    seed: int = 1,
    name: str = "made-up",
    size_unit: SizeUnit = "gpus",
    median_run_s: float = 600.0,
    users: int = 40,
    failure: Sequence[float] = (0.2, 0.2, 0.2),
) -> JobTrace:
    """Jobs of many users; ``failure``: the planted share of failures for jobs of size 1, 2 and 4."""
    random = np.random.default_rng(seed)
    third = random.integers(0, 3, jobs)
    fails = random.random(jobs) < np.asarray(failure)[third]
    return make_trace(
        submit_s=np.sort(MONDAY_S + random.uniform(0, 14 * 86_400, jobs)),
        name=name,
        size_unit=size_unit,
        size=2**third,
        user=[f"user{code}" for code in random.integers(0, users, jobs)],
        wait_s=random.exponential(300, jobs),
        run_s=random.lognormal(np.log(median_run_s), 1.0, jobs),
        status=np.where(fails, "failed", "completed").tolist(),
    )
