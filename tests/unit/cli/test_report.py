"""HTML reports: the data embedded in the page, and its escaping."""

import base64
import gzip
import json
import math
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterscape.cli import report
from clusterscape.cli.report import encode_for_html, fill_page, read_page, record_tables, write_report
from clusterscape.errors import ClusterScapeError

WEB = Path(__file__).parents[3] / "web"
SOURCE = (WEB / "report.html").read_text(encoding="utf-8")
"""The page before it is built: the places that are filled in are the same."""
HOSTILE = "</script><script>alert(1)</script><!--<b>&amp;\"'\u2028"


class Parts(HTMLParser):
    """The text of every element by tag, as a browser parses it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


def read_back(page: str) -> Any:
    return json.loads(Parts(page).texts["script"][0])


def test_names_cannot_leave_the_data_when_they_look_like_tags() -> None:
    answers = {"name": HOSTILE, HOSTILE: [HOSTILE]}
    page = fill_page(SOURCE, "trace", HOSTILE, answers, f"line one\n{HOSTILE}")
    parts = Parts(page)
    assert len(parts.texts["script"]) == len(Parts(SOURCE).texts["script"])
    assert "b" not in parts.texts
    assert parts.texts["title"] == [HOSTILE]
    assert parts.texts["pre"] == [f"line one\n{HOSTILE}"]
    assert read_back(page)["answers"] == answers
    assert "<!--" not in page


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).filter(lambda value: "Infinity" not in json.dumps(value))
)
def test_answers_are_the_same_when_they_are_read_back(value: Any) -> None:
    text = encode_for_html(value)
    assert not set("<>&") & set(text)
    assert json.loads(text) == value


def test_nan_is_null_when_it_is_written() -> None:
    @dataclass
    class Measure:
        seconds: float

    values = [Measure(math.nan), Measure(1.5), np.float64("nan"), np.int64(3)]
    assert json.loads(encode_for_html(values)) == [{"seconds": None}, {"seconds": 1.5}, None, 3]
    with pytest.raises(TypeError, match="object cannot be encoded"):
        encode_for_html(object())


def test_tables_are_the_same_bytes_when_they_are_unpacked() -> None:
    recorded = record_tables(b"\x00arrow" * 100, {"X-Domain": "[0, 1]"})
    assert gzip.decompress(base64.b64decode(recorded["body"])) == b"\x00arrow" * 100
    assert recorded["headers"] == {"X-Domain": "[0, 1]"}


def test_head_holds_kind_title_and_answers_when_a_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PAGE", WEB / "report.html")
    file = tmp_path / "report.html"
    write_report(file, "job-traces", "Job traces: a", {"description": {}}, "jobs 3")
    document = read_back(file.read_text(encoding="utf-8"))
    assert {name: document[name] for name in ("kind", "title", "answers")} == {
        "kind": "job-traces",
        "title": "Job traces: a",
        "answers": {"description": {}},
    }
    assert document["written_at"] > 1_600_000_000_000
    with pytest.raises(ClusterScapeError, match="cannot write"):
        write_report(tmp_path / "no/such/folder.html", "trace", "", {}, "")


def test_error_says_what_to_do_when_the_client_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAGE", tmp_path / "report.html")
    with pytest.raises(ClusterScapeError, match="not built") as caught:
        read_page()
    assert "make setup" in str(caught.value.hint)
    with pytest.raises(ClusterScapeError, match="has no"):
        fill_page("<html></html>", "trace", "", {}, "")
