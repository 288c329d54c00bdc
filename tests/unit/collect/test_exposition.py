import math
import random
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from clusterscape.collect.exposition import STALE_FACTOR, STALE_SPARE, ExpositionParser, Malformed
from clusterscape.model import NodeId, RawScrape, UnixMs

NOW = UnixMs(1_700_000_000_000)

Row = tuple[str, tuple[tuple[str, str], ...], float, int | None]


def parse(text: bytes | str, parser: ExpositionParser | None = None) -> RawScrape:
    body = text.encode() if isinstance(text, str) else text
    return (parser or ExpositionParser("test")).parse(body, fetched_at=NOW)


def rows(scrape: RawScrape) -> list[Row]:
    times: list[int | None] = [None] * len(scrape.series) if scrape.time_ms is None else scrape.time_ms.tolist()
    return [
        (series.name, tuple(sorted(series.labels.items())), value, time)
        for series, value, time in zip(
            (scrape.table.series[code] for code in scrape.series), scrape.value.tolist(), times, strict=True
        )
    ]


def oracle_rows(text: str) -> list[Row]:
    """The rows that prometheus_client reads; untyped text, so that it does not rename counters."""
    return [
        (
            sample.name,
            tuple(sorted(sample.labels.items())),
            float(sample.value),
            None if sample.timestamp is None else round(float(sample.timestamp) * 1000),
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def same(left: list[Row], right: list[Row]) -> bool:
    """Equal rows, where NaN equals NaN and a missing timestamp equals the fetch time."""

    def key(row: Row) -> tuple[object, ...]:
        name, labels, value, time = row
        return name, labels, "NaN" if math.isnan(value) else value, NOW if time is None else time

    return list(map(key, left)) == list(map(key, right))


letters = string.ascii_letters + "_"
names = st.builds(str.__add__, st.sampled_from(letters + ":"), st.text(letters + string.digits + ":", max_size=6))
label_names = st.builds(
    str.__add__, st.sampled_from(string.ascii_letters), st.text(letters + string.digits, max_size=6)
)  # names that begin with two underscores are reserved
label_values = st.text('ab01 \t{}",=\\#_\n\x00é€😀', max_size=10)
numbers = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["+Inf", "-Inf", "NaN", "0", "-0", "007", "1e5", "1E-5", ".5", "5.", "+3"]),
)
spaces = st.sampled_from(["", " ", "\t", "  "])
gaps = st.sampled_from([" ", "\t", "  "])


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def sample_lines(draw: st.DrawFn) -> str:
    labels: dict[str, str] = draw(st.dictionaries(label_names, label_values, max_size=4))
    inner = ",".join(f'{draw(spaces)}{name}{draw(spaces)}="{escape(value)}"' for name, value in labels.items())
    comma = draw(st.sampled_from(["", ","])) if labels else ""
    braces = f"{draw(spaces)}{{{inner}{comma}}}" if labels else draw(st.sampled_from(["", "{}", " { }"]))
    time = draw(st.one_of(st.just(""), st.integers(0, 2**41).map(lambda ms: f" {ms}")))
    return f"{draw(names)}{braces}{draw(gaps)}{draw(numbers)}{time}"


comment_lines = st.sampled_from(["# HELP a some {text} 5", "# TYPE a gauge", "#", "# just a remark", "", "  "])
texts = st.lists(st.one_of(sample_lines(), sample_lines(), comment_lines), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@settings(deadline=None)
@given(texts)
def test_rows_equal_the_reference_parser_when_text_is_valid(text: str) -> None:
    scrape = parse(text)

    assert same(rows(scrape), oracle_rows(text))
    assert not scrape.malformed


@settings(deadline=None)
@given(st.lists(texts, min_size=2, max_size=4))
def test_rows_equal_the_reference_parser_when_one_parser_reads_several_scrapes(scrapes: list[str]) -> None:
    parser = ExpositionParser("test")
    for text in [*scrapes, *scrapes]:
        assert same(rows(parse(text, parser)), oracle_rows(text))


@settings(deadline=None)
@given(st.lists(sample_lines(), max_size=8), st.randoms(use_true_random=False), st.data())
def test_intact_lines_are_unaffected_when_others_are_damaged(
    lines: list[str], random_: random.Random, data: st.DataObject
) -> None:
    damage = data.draw(st.lists(st.binary(max_size=30).map(lambda junk: junk.replace(b"\n", b"")), max_size=4))
    mixed = [*((line.encode(), True) for line in lines), *((junk, False) for junk in damage)]
    random_.shuffle(mixed)
    parser = ExpositionParser("test")
    if data.draw(st.booleans()):
        parse("".join(f"{line}\n" for line in lines), parser)

    scrape = parse(b"".join(line + b"\n" for line, _ in mixed), parser)

    parsed_rows = rows(scrape)
    for line in lines:
        (expected,) = oracle_rows(line + "\n")
        assert any(same([row], [expected]) for row in parsed_rows)
    content = sum(1 for line, _ in mixed if line.strip() and not line.lstrip().startswith(b"#"))
    assert len(parsed_rows) + sum(scrape.malformed.values()) == content


@settings(deadline=None)
@given(st.binary())
def test_bytes_are_read_without_raising_when_they_are_no_text(junk: bytes) -> None:
    scrape = parse(junk)

    assert len(scrape.series) == len(scrape.value)


@settings(deadline=None)
@given(texts, st.data())
def test_no_value_is_invented_when_text_is_cut_or_bytes_are_flipped(text: str, data: st.DataObject) -> None:
    body = bytearray(text.encode())
    parser = ExpositionParser("test")
    parse(bytes(body), parser)
    for _ in range(data.draw(st.integers(0, 3))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(body[: data.draw(st.integers(0, len(body)))])

    warm, cold = parse(damaged, parser), parse(damaged)

    assert same(rows(warm), rows(cold))
    assert warm.malformed == cold.malformed


GPU = 'gpu="0",UUID="GPU-1",Hostname="gpu-001"'


def test_values_change_and_codes_stay_when_only_values_differ() -> None:
    parser = ExpositionParser("test", NodeId("gpu-001"))
    first = parse(f"# TYPE a gauge\na{{{GPU}}} 1\nb{{{GPU}}} 2\nc 3\n", parser)
    second = parse(f"# TYPE a gauge\na{{{GPU}}} 10\nb{{{GPU}}} +Inf\nc 3e2\n", parser)

    assert second.table is first.table
    assert second.series is first.series
    assert second.value.tolist() == [10.0, math.inf, 300.0]
    assert second.node == "gpu-001"


def test_label_set_is_shared_when_metrics_belong_to_one_gpu() -> None:
    scrape = parse(f"a{{{GPU}}} 1\nb{{{GPU}}} 2\n")

    left, right = scrape.table.series
    assert left.labels is right.labels


@pytest.mark.parametrize(
    "changed",
    [
        f"a{{{GPU}}} 1\nx{{{GPU}}} 2\n",
        f"b{{{GPU}}} 2\na{{{GPU}}} 1\n",
        f"a{{{GPU}}} 1\n",
        f"a{{{GPU}}} 1\nb{{{GPU}}} 2\nc 3\n",
        f"a{{{GPU}}} 1_0\nb{{{GPU}}} 2\n",
        f"a{{{GPU}}} 1\n7\n",
        f"a{{{GPU}}} 1,2\nb{{{GPU}}} \n",
        f"a{{{GPU}}} true\nb{{{GPU}}} null\n",
        f"a{{{GPU}}} 1 1700000000000\nb{{{GPU}}} 2\n",
        f"a{{{GPU}}} 1\nb{{{GPU}}} 2",
    ],
)
def test_scrape_reads_as_if_it_were_the_first_when_its_shape_changes(changed: str) -> None:
    parser = ExpositionParser("test")
    parse(f"a{{{GPU}}} 1\nb{{{GPU}}} 2\n", parser)

    warm, cold = parse(changed, parser), parse(changed)

    assert rows(warm) == rows(cold)
    assert warm.malformed == cold.malformed


def test_label_values_are_whole_when_they_hold_braces_spaces_and_escapes() -> None:
    scrape = parse('a{x="} 1 # {",y="a\\\\b\\"c\\nd",z="\\q"} 5\n')

    assert scrape.table.series[0].labels == {"x": "} 1 # {", "y": 'a\\b"c\nd', "z": "\\q"}
    assert scrape.value.tolist() == [5.0]


def test_timestamps_are_milliseconds_when_text_is_the_older_format() -> None:
    scrape = parse("a 1 1700000000123\nb 2\n")

    assert scrape.time_ms is not None
    assert scrape.time_ms.tolist() == [1_700_000_000_123, NOW]


def test_timestamps_are_read_as_seconds_when_text_is_open_metrics() -> None:
    scrape = parse('a_total{x="1"} 1 1700000000.123 # {trace_id="q"} 0.5 1.0\n# EOF\n')

    assert scrape.time_ms is not None
    assert scrape.time_ms.tolist() == [1_700_000_000_123]


def test_exemplar_is_ignored_when_a_sample_has_one() -> None:
    scrape = parse('a_bucket{le="1"} 17 # {trace_id="o p}"} 0.67 1520879607.789\n# EOF\n')

    assert rows(scrape) == [("a_bucket", (("le", "1"),), 17.0, None)]


def test_rows_are_read_when_lines_end_with_carriage_returns() -> None:
    parser = ExpositionParser("test")
    text = f"# TYPE a gauge\r\na{{{GPU}}} 1\r\nb 2\r\n"

    assert parse(text, parser).value.tolist() == [1.0, 2.0]
    assert parse(text.replace(" 2", " 3"), parser).value.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'a{x="1} 5', Malformed.HEAD),
        (b"a", Malformed.HEAD),
        (b"{} 5", Malformed.HEAD),
        (b"<html><body>", Malformed.HEAD),
        (b'a{x="1",x="2"} 5', Malformed.LABELS),
        (b'a{x="1" y="2"} 5', Malformed.LABELS),
        (b"a{x=1} 5", Malformed.LABELS),
        (b'a{__name__="b"} 5', Malformed.LABELS),
        (b'a{x="\xff\xfe"} 5', Malformed.ENCODING),
        (b"a ERROR - FAILED TO CONVERT TO STRING", Malformed.VALUE),
        (b"a 1_000", Malformed.VALUE),
        (b"a 0x10", Malformed.VALUE),
        (b'a{x="1"}', Malformed.VALUE),
        (b"a 1 yesterday", Malformed.TIMESTAMP),
        (b"a 1 NaN", Malformed.TIMESTAMP),
        (b"a 1 1e30", Malformed.TIMESTAMP),
        (b"a 1 2 3", Malformed.VALUE),
    ],
)
def test_line_is_counted_by_reason_when_it_is_malformed(line: bytes, reason: Malformed) -> None:
    scrape = parse(b"before 1\n" + line + b"\nafter 2\n")

    assert scrape.malformed == {reason: 1}
    assert scrape.value.tolist() == [1.0, 2.0]


def test_last_line_is_counted_as_truncated_when_text_ends_within_it() -> None:
    scrape = parse("a 1234\nb 12")

    assert scrape.value.tolist() == [1234.0]
    assert scrape.malformed == {Malformed.TRUNCATED: 1}


def test_table_is_renewed_when_labels_keep_changing() -> None:
    parser = ExpositionParser("test")
    tables, largest = set(), 0
    for job in range(100):
        scrape = parse("".join(f'm{metric}{{gpu="0",hpc_job="{job}"}} 1\n' for metric in range(50)), parser)
        tables.add(id(scrape.table))
        largest = max(largest, len(scrape.table))
        assert {series.labels["hpc_job"] for series in (scrape.table.series[code] for code in scrape.series)} == {
            str(job)
        }

    assert len(tables) > 1
    assert largest <= STALE_FACTOR * 50 + STALE_SPARE + 50


def test_damaged_text_takes_linear_time_when_quotes_and_braces_never_close() -> None:
    for sign in string.punctuation:
        text = b'a{b="' + sign.encode() * 200_000 + b"\n"
        assert len(parse(text).series) == 0


def test_series_codes_cannot_be_overwritten_when_scrapes_share_them() -> None:
    scrape = parse("a 1\n")

    with pytest.raises(ValueError):
        scrape.series[0] = 7
    assert scrape.series.dtype == np.int32
