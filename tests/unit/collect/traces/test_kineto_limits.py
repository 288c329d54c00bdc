"""Impossible times and numbers in Kineto files."""

from pathlib import Path

import polars as pl
import pytest
from fuzz.seeds import KINETO

from clusterscape.collect.traces import read_traces


@pytest.mark.parametrize(
    "time", ["340282366920938463463374607431768211456", "1e300", "-1e300", "99999999999999999999.5"]
)
def test_event_is_left_out_and_counted_when_its_time_is_beyond_all_clocks(time: str, tmp_path: Path) -> None:
    data = KINETO.replace(b'"ts": 11,', b'"ts": %s,' % time.encode())
    path = tmp_path / "rank1.json"
    path.write_bytes(data)
    trace = read_traces([path], workers=1)
    assert "aten::mm" not in trace.spans["name"].to_list()
    assert "cudaLaunchKernel" in trace.spans["name"].to_list()
    assert "1 events with fields of unexpected types" in trace.notes[0]


@pytest.mark.parametrize("number", ["1e300", str(2**70), '"many"'])
def test_number_is_missing_when_no_column_holds_it(number: str, tmp_path: Path) -> None:
    data = KINETO.replace(b'"correlation": 9}', b'"correlation": 9, "bytes": %s, "flops": "x"}' % number.encode())
    path = tmp_path / "rank1.json"
    path.write_bytes(data)
    spans = read_traces([path], workers=1).spans
    launch = spans.row(by_predicate=pl.col("name") == "cudaLaunchKernel", named=True)
    assert launch["bytes"] is None
    assert launch["flops"] is None
