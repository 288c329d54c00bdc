"""All measures of a run that verdicts are drawn from, and what is too small to be worth one."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from clusterscape.analyze.trace.collectives import Slack
from clusterscape.analyze.trace.pipeline import Bubble
from clusterscape.analyze.trace.whatif import StragglerAnswer
from clusterscape.model.spans import RankFacts

MIN_STEP_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Measures:
    """All that verdicts are drawn from. ``slack``: in pipelines that of collectives within a stage."""

    spans: pl.DataFrame
    steps: pl.DataFrame
    ranks: Sequence[RankFacts]
    breakdown: pl.DataFrame
    collectives: pl.DataFrame
    messages: pl.DataFrame
    slack: Sequence[Slack]
    passes: pl.DataFrame
    bubble: Bubble | None
    stragglers: StragglerAnswer | None
    error_ns: float | None

    @property
    def step_s(self) -> float:
        """Mean length of a step."""
        return float(self.breakdown["step_ns"].to_numpy().mean()) / 1e9 if self.breakdown.height else 0.0

    @property
    def least_s(self) -> float:
        """What is smaller is not worth a verdict."""
        return max(MIN_STEP_SHARE * self.step_s, (self.error_ns or 0.0) / 1e9)

    @property
    def step_count(self) -> int:
        """How many steps there are."""
        return int(self.steps["step"].n_unique())
