"""Bands: what joins the same operator instance on neighboring rows of a Marey graph.

Peers of a stage are joined operator by operator, neighboring stages by the pass of a micro-batch, members of a collective by
their match, and a send with its receive. Left and right edges are those of the joined parts, not of what they were merged into.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clusterscape.analyze.trace.drawn import CODES, DrawnTrace, Links

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class BandKind(StrEnum):
    """What a band stands for."""

    SAME = "same"
    COLLECTIVE = "collective"
    MESSAGE = "message"


BAND_KINDS = pl.Enum([each.value for each in BandKind])
EDGES = ("from_start", "from_end", "to_start", "to_end")
BAND_SCHEMA: dict[str, pl.DataType] = {
    "from_span": pl.UInt32(),
    "to_span": pl.UInt32(),
    "kind": BAND_KINDS,
    **dict.fromkeys(EDGES, pl.Float64()),
    "count": pl.UInt32(),
    "max_skew_ns": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """Output spans as bands see them. ``order`` is the place of its row among rows that are joined (lanes of one rank share it,
    −1: not joined), ``stage`` the place of its stage; ``codes`` as ``drawn.CODES``.
    """

    order: Ints
    stage: Ints
    is_compute: NDArray[np.bool_]
    start: Floats
    end: Floats
    codes: NDArray[np.int32]


def link_spans(trace: DrawnTrace, owner: NDArray[np.int32], chosen: Ints, talk: Ints, outputs: int) -> Links:
    """Bands between output spans, from the spans in them.

    ``owner``: for each span of the trace its output span, −1 where it has none that is joined; ``chosen``: those that have one,
    one output span after another; ``talk``: those that communicate; ``outputs``: how many output spans there are.
    """
    from clusterscape.analyze.trace.marey_kernels import join_spans

    sends = talk[trace.is_send[talk]]
    pairs = {
        BandKind.SAME: (chosen, trace.following[chosen]),
        BandKind.COLLECTIVE: (talk, trace.collective_following[talk]),
        BandKind.MESSAGE: (sends, trace.partner[sends]),
    }
    found = {}
    for kind, (spans, following) in pairs.items():
        known = following >= 0
        found[kind.value] = join_spans(spans[known], following[known], owner, trace.start, trace.end, outputs)
    return found


def relink(links: Links, entry: Ints, group: Ints, entries: int, outputs: int) -> Links:
    """Bands between output spans, from those between their entries: of ``entries``, those in the picture (ascending) and the
    output span of each.
    """
    from clusterscape.analyze.trace.marey_kernels import join_links

    owner = np.full(entries, -1, np.int32)
    owner[entry] = group
    return {kind: join_links(pairs, edges, entry, owner, outputs) for kind, (pairs, edges) in links.items()}


def find_bands(links: Links, shown: Shown, places: NDArray[np.uint32]) -> pl.DataFrame:
    """All bands of the picture (``BAND_SCHEMA``); ``from_span``/``to_span`` say where in it the output spans are (``places``)."""
    tables = [_table(pairs, edges, kind, places) for kind, (pairs, edges) in links.items()]
    return pl.concat([*tables, _join_passes(shown, places)])


def _table(pairs: NDArray[np.uint32], edges: Floats, kind: str, places: NDArray[np.uint32]) -> pl.DataFrame:
    """Pairs of output spans come once each, as spans come one output span after another."""
    wholes = {name: pl.Series(places[pairs[at]]) for at, name in enumerate(("from_span", "to_span"))}
    wholes["count"] = pl.Series(pairs[2])
    reals = {name: pl.Series(column) for name, column in zip((*EDGES, "max_skew_ns"), edges, strict=True)}
    kinds = {"kind": pl.Series([kind], dtype=BAND_KINDS).new_from_index(0, pairs.shape[1])}
    found = wholes | reals | kinds
    return pl.DataFrame({name: found[name] for name in BAND_SCHEMA})


def _join_passes(shown: Shown, places: NDArray[np.uint32]) -> pl.DataFrame:
    """Forward and backward of a micro-batch from one stage to the next."""
    at = CODES.index("pass")
    if not shown.stage.size or (shown.stage == shown.stage[0]).all():
        return pl.DataFrame(schema=BAND_SCHEMA)
    chosen = np.flatnonzero(shown.is_compute & (shown.order >= 0) & (shown.codes[:, at] >= 0))
    table = pl.DataFrame(
        {
            "index": places[chosen],
            "order": shown.order[chosen],
            "stage": shown.stage[chosen],
            "pass": shown.codes[chosen, at],
            "start": shown.start[chosen],
            "end": shown.end[chosen],
        }
    )
    whole = table.group_by("order", "stage", "pass").agg(
        pl.col("index").sort_by("start").first(), pl.col("start").min(), pl.col("end").max()
    )
    following = whole.with_columns(pl.col("order") - 1)
    joined = whole.join(following, on=["order", "pass"], suffix="_next").filter(pl.col("stage") != pl.col("stage_next"))
    joined = joined.sort("order", "start", "index").select(
        pl.col("index").alias("from_span"),
        pl.col("index_next").alias("to_span"),
        pl.col("start").alias("from_start"),
        pl.col("end").alias("from_end"),
        pl.col("start_next").alias("to_start"),
        pl.col("end_next").alias("to_end"),
        pl.lit(1).alias("count"),
        (pl.col("start_next") - pl.col("start")).abs().alias("max_skew_ns"),
    )
    return _typed(joined, BandKind.SAME.value)


def _typed(table: pl.DataFrame, kind: str) -> pl.DataFrame:
    return table.with_columns(pl.lit(kind, BAND_KINDS).alias("kind")).select(
        pl.col(name).cast(dtype) for name, dtype in BAND_SCHEMA.items()
    )
