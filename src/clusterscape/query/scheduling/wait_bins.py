"""Forecast errors by job size and queue length, with labels for the bins; for the live queue and for backtests."""

from dataclasses import dataclass

from clusterscape.analyze.jobs.wait_intervals import QUEUE_EDGES, SIZE_EDGES, WaitBins, find_bin_errors
from clusterscape.model.arrays import Float64s
from clusterscape.model.identity_fields import PublicText


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBinRow:
    """Forecasts of jobs of similar size and queue length. ``size`` and ``queue`` are labels of the bin."""

    size: PublicText
    queue: PublicText
    jobs: int
    median_error_s: float


def describe_bins(median_s: Float64s, wait_s: Float64s, bins: WaitBins) -> list[WaitBinRow]:
    """Errors by bin, with labels."""
    return [
        WaitBinRow(size=name_size(size), queue=name_queue(queue), jobs=count, median_error_s=error)
        for size, queue, count, error in find_bin_errors(median_s, wait_s, bins)
    ]


def name_size(bin: int) -> str:
    """The label of a size bin, such as ``2–10 %`` of the cluster."""
    edges = [f"{edge:.0%}".replace("%", "") for edge in SIZE_EDGES]
    if bin == 0:
        return f"under {edges[0]} %"
    return f"from {edges[-1]} %" if bin == len(edges) else f"{edges[bin - 1]}–{edges[bin]} %"


def name_queue(bin: int) -> str:
    """The label of a queue bin, such as ``3–11 ahead``."""
    edges = [int(edge) for edge in QUEUE_EDGES]
    if bin == 0:
        return f"under {edges[0]} ahead"
    return f"{edges[-1]} or more ahead" if bin == len(edges) else f"{edges[bin - 1]}–{edges[bin] - 1} ahead"
