"""Verdicts on a distributed run: why a step is slow. Only the record; they are drawn in ``analyze/trace``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class VerdictKind(StrEnum):
    """Root causes."""

    SLOW_WORKER = "slow_worker"
    STAGE_IMBALANCE = "stage_imbalance"
    SEQUENCE_LENGTH_VARIANCE = "sequence_length_variance"
    INPUT_STALL = "input_stall"
    SLOW_LINK = "slow_link"
    LAUNCH_BOUND = "launch_bound"
    SMALL_COLLECTIVES = "small_collectives"
    EXPOSED_COMMUNICATION = "exposed_communication"
    GARBAGE_COLLECTION = "garbage_collection"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceVerdict:
    """One root cause. ``seconds_per_step`` is what mending it would give back, at most; ``is_hidden`` where that only shows
    once a larger cause is mended. ``evidence`` holds the numbers (seconds, unless named otherwise); ``spans`` rows to look at.
    """

    kind: VerdictKind
    rank: int | None = None
    stage: int | None = None
    seconds_per_step: float
    sentence: str
    is_hidden: bool = False
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    spans: tuple[int, ...] = ()
