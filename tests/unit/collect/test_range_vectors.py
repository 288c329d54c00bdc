import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.collect.range_vectors import SampleReader
from clusterscape.errors import SourceError
from clusterscape.model import RawScrape, UnixMs

Series = tuple[str, Mapping[str, str], Sequence[tuple[float, str]]]

GPU0 = {"gpu": "0", "UUID": "GPU-0", "Hostname": "n1"}
GPU1 = {"gpu": "1", "UUID": "GPU-1", "Hostname": "n1"}


def named(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    return {"__name__": name, **labels}


def answer(result: object, *, is_spaced: bool = False) -> bytes:
    """A response as servers write it, or with spaces as a proxy might."""
    separators = None if is_spaced else (",", ":")
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": result}}, separators=separators
    ).encode()


def matrix(*series: Series, is_spaced: bool = False) -> bytes:
    result: list[dict[str, object]] = [
        {"metric": named(name, labels), "values": values} for name, labels, values in series
    ]
    return answer(result, is_spaced=is_spaced)


def take(reader: SampleReader) -> RawScrape:
    return reader.take(source="prometheus", fetched_at=UnixMs(9_000), duration_s=0.1)


def rows(scrape: RawScrape) -> list[tuple[str, str, int, float]]:
    assert scrape.time_ms is not None
    series = [scrape.table.series[code] for code in scrape.series]
    return [
        (entry.name, entry.labels["gpu"], int(at), float(value))
        for entry, at, value in zip(series, scrape.time_ms, scrape.value, strict=True)
    ]


@pytest.mark.parametrize("is_spaced", [False, True])
def test_every_sample_keeps_its_own_time_when_read(is_spaced: bool) -> None:
    odd = {**GPU1, "values": 'a"},"values":[[', "path": "c:\\x", "ü": '{"metric":'}
    series: list[Series] = [("UTIL", GPU0, [(1.001, "5"), (2.5, "-6.5e3")]), ("UTIL", odd, [(1.002, "+Inf")])]
    reader = SampleReader()
    assert reader.read("UTIL", matrix(*series, is_spaced=is_spaced)) == 2
    scrape = take(reader)
    assert rows(scrape) == [("UTIL", "0", 1001, 5.0), ("UTIL", "0", 2500, -6500.0), ("UTIL", "1", 1002, float("inf"))]
    assert scrape.table.series[1].labels == odd
    assert scrape.malformed == {}


def test_sample_is_reported_once_when_responses_overlap() -> None:
    reader = SampleReader()
    reader.read("UTIL", matrix(("UTIL", GPU0, [(1, "5"), (2, "6")])))
    first = take(reader)
    reader.read("UTIL", matrix(("UTIL", GPU0, [(1, "5"), (2, "6"), (3, "7")])))
    second = take(reader)
    assert rows(second) == [("UTIL", "0", 3000, 7.0)]
    assert second.table is first.table
    assert rows(take(reader)) == []


def test_older_sample_is_reported_when_it_became_visible_late() -> None:
    reader = SampleReader()
    reader.read("UTIL", matrix(("UTIL", GPU0, [(1, "5"), (3, "7")])))
    take(reader)
    reader.read("UTIL", matrix(("UTIL", GPU0, [(1, "5"), (2, "6"), (3, "7")])))
    assert rows(take(reader)) == [("UTIL", "0", 2000, 6.0)]
    reader.read(
        "UTIL", matrix(("UTIL", GPU0, [(0, "4"), (1, "5"), (2, "6"), (3, "7"), (4, "8")]))
    )  # a longer look back
    assert rows(take(reader)) == [("UTIL", "0", 4000, 8.0)]


def test_label_sets_are_shared_when_metrics_have_the_same_labels() -> None:
    reader = SampleReader()
    reader.read("UTIL", matrix(("UTIL", GPU0, [(1, "5")]), ("POWER", GPU0, [(1, "5")])))
    table = take(reader).table
    assert table.series[0].labels is table.series[1].labels
    assert table.series[0].labels == GPU0


def test_a_new_table_is_begun_when_most_series_are_stale() -> None:
    reader = SampleReader()
    for pod in range(1_100):
        reader.read("UTIL", matrix(("UTIL", {**GPU0, "pod": str(pod)}, [(pod, "1")]), ("UTIL", GPU1, [(pod, "2")])))
        scrape = take(reader)
        assert rows(scrape)[-1] == ("UTIL", "1", pod * 1000, 2.0)
    assert len(scrape.table) < 1_000


def test_damaged_series_are_counted_and_the_rest_is_read_when_a_response_is_malformed() -> None:
    odd: list[object] = [
        {"metric": named("UTIL", GPU0), "values": [[1, "5"], [2, "what"]]},
        {"metric": {"no": "name"}, "values": [[1, "5"]]},
        {"metric": ["list"], "values": []},
        {"metric": {"__name__": "UTIL", "nested": {}}, "values": [[1, "5"]]},
        {"values": [[1, "5"]]},
        None,
        {"metric": named("UTIL", GPU1), "values": [["now", "5"]]},
        {"metric": named("UTIL", GPU1), "values": [[3, "7"]]},
    ]
    reader = SampleReader()
    reader.read("UTIL", answer(odd))
    scrape = take(reader)
    assert rows(scrape) == [("UTIL", "1", 3000, 7.0)]
    assert scrape.malformed == {"malformed_series": 7}
    assert len(scrape.series) == len(scrape.value)


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_json_is_refused_or_counted_when_it_is_no_response(data: object) -> None:
    reader = SampleReader()
    whole: list[object] = [data, {"status": "success", "data": data}]
    for body in (answer(data), answer([data]), *(json.dumps(document).encode() for document in whole)):
        with suppress(SourceError):
            reader.read("UTIL", body)
    scrape = take(reader)
    assert scrape.time_ms is not None
    assert len(scrape.series) == len(scrape.value) == len(scrape.time_ms)


@given(st.binary(max_size=200), st.integers(0, 600), st.integers(0, 40))
def test_bytes_are_refused_or_counted_when_a_response_is_damaged(noise: bytes, at: int, cut: int) -> None:
    body = matrix(("UTIL", GPU0, [(1, "5"), (2, "6")]), ("POWER", GPU1, [(1, "7")]))
    reader = SampleReader()
    with suppress(SourceError):
        reader.read("UTIL", body[:at] + noise + body[at + cut :])
    scrape = take(reader)
    assert scrape.time_ms is not None
    assert len(scrape.series) == len(scrape.value) == len(scrape.time_ms)
    assert all(code < len(scrape.table) for code in scrape.series)


@pytest.mark.parametrize("body", [b"", b"<html>login</html>", b'{"status":"error"}', b'{"status":"success","data":[]}'])
def test_response_is_refused_when_it_is_not_prometheus(body: bytes) -> None:
    with pytest.raises(SourceError, match="not of the Prometheus API"):
        SampleReader().read("UTIL", body)
