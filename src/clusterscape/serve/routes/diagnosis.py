"""Diagnosis of one workload: clusters and findings as JSON; histograms, lines and scatter plots as Arrow."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from clusterscape.query.bounds import ItemId, Moment, Name
from clusterscape.query.diagnosis.answers import By, DiagnosisAnswer, Linkage, WorkloadEvent
from clusterscape.query.diagnosis.query import ComparisonOptions, LineSummary
from clusterscape.query.picture import encode_strings
from clusterscape.serve.redaction import NumbersOnly, RedactedResponse, RedactedRoute, SampleRow
from clusterscape.serve.state import State
from clusterscape.serve.wire import ARROW_RESPONSE, arrow_response, arrow_tables_response

router = APIRouter(prefix="/api/v1/workloads/{workload}", tags=["diagnosis"], route_class=RedactedRoute)

WindowStart = Annotated[
    Moment | None, Query(alias="from", description="Unix ms; by default the start of the workload.")
]
WindowEnd = Annotated[Moment | None, Query(alias="to", description="Unix ms; by default its end, or now.")]
Significance = Annotated[float, Query(gt=0, lt=1)]
NameList = Annotated[str, Query(max_length=200_000, description="Names, separated by commas.")]
UnitList = Annotated[
    str, Query(max_length=200_000, description="Units, separated by commas; `node:*` means all that it held on a node.")
]


def read_clustering(
    metric: Annotated[Name | None, Query(description="By default the first metric that has samples.")] = None,
    by: Annotated[By, Query(description="How GPUs are compared.")] = "histogram",
    max_lag: Annotated[int, Query(ge=0, le=64, description="Maximum lag of timelines, in steps of the grid.")] = 0,
    linkage: Linkage = "average",
    count: Annotated[
        int | None, Query(ge=1, le=1_000_000, description="Number of clusters; by default chosen automatically.")
    ] = None,
    height: Annotated[
        float | None, Query(ge=0, le=1e15, description="Where to cut the tree; by default chosen automatically.")
    ] = None,
) -> ComparisonOptions:
    """Read how GPUs are clustered, from the parameters that all cluster routes share."""
    return ComparisonOptions(metric=metric, by=by, max_lag=max_lag, linkage=linkage, count=count, height=height)


Clustered = Annotated[ComparisonOptions, Depends(read_clustering)]


def read_comparing(clustered: Clustered, significance: Significance = 0.01) -> ComparisonOptions:
    """Read how GPUs are compared: clustered, and tested for odd ones."""
    return replace(clustered, significance=significance)


Compared = Annotated[ComparisonOptions, Depends(read_comparing)]


@router.get("/diagnosis")
def get_diagnosis(
    workload: ItemId, state: State, comparing: Compared, start: WindowStart = None, end: WindowEnd = None
) -> DiagnosisAnswer:
    """Clusters of the workload's GPUs, outliers, what they have in common, and findings in words."""
    return state.queries.diagnosis.diagnosis(workload, start_ms=start, end_ms=end, options=comparing)


@router.get("/histograms", response_class=Response, responses=ARROW_RESPONSE)
def get_workload_histograms(
    workload: ItemId,
    state: State,
    metric: Name,
    start: WindowStart = None,
    end: WindowEnd = None,
    bins: Annotated[int, Query(ge=1, le=512)] = 40,
) -> RedactedResponse:
    """``unit`` and the counts ``b0`` … of shared bins. ``X-Domain``: JSON [low, high], or null without samples."""
    picture = state.queries.diagnosis.histograms(workload, metric=metric, start_ms=start, end_ms=end, bins=bins)
    return arrow_response(state.redact_table(encode_strings(picture.table, ["unit"]), SampleRow), picture.headers)


@router.get("/lines", response_class=Response, responses=ARROW_RESPONSE)
def get_workload_lines(
    workload: ItemId,
    state: State,
    comparing: Compared,
    metrics: NameList,
    units: UnitList = "",
    start: WindowStart = None,
    end: WindowEnd = None,
    points: Annotated[int, Query(ge=1, le=10_000, description="Width of the picture in pixels.")] = 1000,
    summary: Annotated[
        LineSummary,
        Query(
            description="Also the `median` of all units; `clusters`: also `c0:median`, `c0:p5`, `c0:p95` … of each cluster "
            "of the diagnosis with the same parameters. More than 64 units always have `median`, `p5` and `p95`."
        ),
    ] = "none",
) -> RedactedResponse:
    """``metric``, ``unit``, ``time_ms``, ``value``: keeps every extreme, at most two points per pixel; null breaks a line."""
    table = state.queries.diagnosis.lines(
        workload,
        metrics=_split(metrics),
        units=_split(units),
        start_ms=start,
        end_ms=end,
        points=points,
        summary=summary,
        options=comparing,
    )
    return arrow_response(state.redact_table(encode_strings(table, ["metric", "unit"]), SampleRow))


@router.get("/scatter", response_class=Response, responses=ARROW_RESPONSE)
def get_workload_scatter(
    workload: ItemId,
    state: State,
    clustered: Clustered,
    x: Name,
    y: Name,
    start: WindowStart = None,
    end: WindowEnd = None,
    units: UnitList = "",
    robust: bool = False,
    significance: Annotated[
        float, Query(gt=0, lt=1, description="Share of the points of a Gaussian cloud that lie outside.")
    ] = 0.001,
    most: Annotated[
        int, Query(ge=1, le=500_000, description="Maximum number of points in addition to the outliers.")
    ] = 20_000,
) -> RedactedResponse:
    """``unit``, ``time_ms``, ``x``, ``y``, ``distance`` (Mahalanobis, from the cloud of the GPU's peers), ``is_outlier``.

    A second table follows (``X-Tables``: the bytes of each), with the ``count`` of points in each cell of a grid, row by row from
    the lowest y. Headers in JSON: ``X-Density`` (``x`` and ``y``: what the grid covers, ``columns``; null without points),
    ``X-Counts``, ``X-Cutoff`` (of the distance), ``X-Note``.
    """
    picture = state.queries.diagnosis.scatter(
        workload,
        x=x,
        y=y,
        start_ms=start,
        end_ms=end,
        units=_split(units),
        robust=robust,
        significance=significance,
        most=most,
        options=clustered,
    )
    points = state.redact_table(encode_strings(picture.table, ["unit"]), SampleRow)
    return arrow_tables_response([points, state.redact_table(picture.density, NumbersOnly)], picture.headers)


@router.get("/events")
def list_workload_events(
    workload: ItemId, state: State, start: WindowStart = None, end: WindowEnd = None
) -> list[WorkloadEvent]:
    """Start, end, violations, XID errors, other workloads on the same GPUs, comments."""
    return state.queries.diagnosis.events(workload, start_ms=start, end_ms=end)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
