"""Operator graphs: what a step of every pipeline stage consists of and what depends on what. Columns, never objects.

Owns the columns. Reading files is ``collect/traces``; drawing decisions are made in ``analyze/trace/flow.py``.
"""

from collections.abc import Mapping
from enum import StrEnum

import polars as pl

from clusterscape.model.tables import fill_table


class FlowMark(StrEnum):
    """What part of the parallel strategy an operator is."""

    PIPELINE = "pp"
    TENSOR = "tp"
    DATA = "dp"
    EXPERT = "ep"
    REDISTRIBUTION = "redistribution"
    GRADIENT_AGGREGATION = "gradient_aggregation"
    COMMUNICATION = "communication"
    """Of a kind that is not known."""


OPERATOR_SCHEMA: Mapping[str, pl.DataType] = {
    "stage": pl.Int32(),  # null: the run has no stages
    "name": pl.String(),
    "type": pl.String(),
    "namespace": pl.String(),  # "/" between its parts; "" at the top
    "inputs": pl.List(pl.UInt32()),  # rows of this table, in the order of the operator's inputs
    "shards": pl.List(pl.List(pl.Int32())),  # for every input, into how many parts each dimension is split
    "mark": pl.String(),  # FlowMark
    "shape": pl.String(),
    "data_type": pl.String(),
    "message": pl.String(),  # send, recv
    "message_key": pl.String(),  # a send and its receive have the same
    "span": pl.Int64(),  # row of the span table
    "start_ns": pl.Float64(),  # since the trace's origin
    "end_ns": pl.Float64(),
    "duration_ns": pl.Float64(),
}
"""Column → type. Rows of a stage are in the order of execution: inputs come before what takes them."""


def make_operators(columns: Mapping[str, object], height: int) -> pl.DataFrame:
    """A table of given columns: series, lists, or one value for all rows; those not given are null."""
    return fill_table(OPERATOR_SCHEMA, columns, height, what="operators")
