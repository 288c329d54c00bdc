"""Limits on runs per user and on the size of a run: the excess is refused or left out, and counted."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tracking.site import NOW

from clusterscape.errors import ThrottledError, TooLargeError
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.runs import RunIntake
from clusterscape.model import UnixMs
from clusterscape.model.run_frames import NO_STEP, encode_event, encode_samples
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.settings.limits import RunLimits
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

DAY_MS = 86_400_000


class Site:
    """Stores, an intake with small limits, and a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        storage = StorageSettings(data_dir=folder)
        self.metrics = open_metric_store(storage, RetentionSettings(), cluster="c")
        self.records = open_record_store(storage)
        self.now = NOW

    def intake(self, **limits: Any) -> RunIntake:
        ingest = Ingest(self.metrics, self.records, Changes(), clock=lambda: self.now)
        return RunIntake(ingest, self.records, clock=lambda: self.now, limits=RunLimits(**limits))

    def detail(self, run: str) -> dict[str, Any]:
        stored = self.records.run(run)
        assert stored is not None
        return dict(msgspec.to_builtins(stored.detail))


@pytest.fixture
def site(tmp_path: Path):  # type: ignore[no-untyped-def]
    site = Site(tmp_path)
    yield site
    site.metrics.close()
    site.records.close()


def begin(run: str, user: str = "ada", **fields: Any) -> bytes:
    return encode_event({"event": "run", "run": run, "user": user, "queued_at": NOW, **fields})


def series(code: int, name: str) -> bytes:
    event = {"event": "series", "code": code, "name": name, "unit": None, "scope": "run", "method": "measured"}
    return encode_event(event) + encode_samples([code], [NOW * 1000], [NO_STEP], [1.0])


def test_new_runs_are_refused_when_a_user_has_too_many(site: Site) -> None:
    intake = site.intake(per_user=2)
    for run in ("r1", "r2"):
        intake.take(run, "a", 0, begin(run), user="ada")
    with pytest.raises(TooLargeError, match="ada has 2 runs"):
        intake.take("r3", "a", 0, begin("r3"), user="ada")
    intake.take("r1", "b", 0, series(0, "loss"), user="ada")
    intake.take("r4", "a", 0, begin("r4", "bob"), user="bob")
    with pytest.raises(TooLargeError, match="ada has 2 runs"):  # counted from the store after a restart
        site.intake(per_user=2).take("r3", "a", 0, begin("r3"), user="ada")
    assert {record.run for record in site.records.runs().records} == {"r1", "r2", "r4"}


def test_new_runs_wait_when_a_user_began_too_many_today(site: Site) -> None:
    intake = site.intake(new_per_day=2)
    for number in range(2):
        site.now = UnixMs(NOW + number * 1000)
        intake.take(f"r{number}", "a", 0, begin(f"r{number}"), user="ada")
    for intake_now in (intake, site.intake(new_per_day=2)):
        with pytest.raises(ThrottledError) as refused:
            intake_now.take("r3", "a", 0, begin("r3"), user="ada")
        assert refused.value.retry_after_s == DAY_MS // 1000 - 1
    site.now = UnixMs(NOW + DAY_MS)
    intake.take("r3", "a", 0, begin("r3"), user="ada")


def test_pieces_are_refused_when_a_user_has_stored_too_many_bytes(site: Site) -> None:
    intake = site.intake(bytes_per_user=2**20)
    intake.take("r1", "a", 0, begin("r1"), user="ada")
    many = encode_samples([0] * 30_000, [NOW * 1000] * 30_000, [NO_STEP] * 30_000, [0.0] * 30_000)
    assert len(many) < 5000, "small as it is sent, large once unpacked"
    intake.take("r1", "b", 0, many, user="ada")
    with pytest.raises(TooLargeError, match="the runs of ada have"):
        intake.take("r1", "b", len(many), many, user="ada")
    with pytest.raises(TooLargeError, match="the runs of ada have"):
        site.intake(bytes_per_user=2**20).take("r2", "a", 0, begin("r2") + many, user="ada")
    intake.take("r3", "a", 0, begin("r3", "bob") + many, user="bob")


def test_files_are_refused_when_a_run_has_too_many(site: Site) -> None:
    intake = site.intake(files=2)
    intake.take("r1", "a", 0, begin("r1"))
    intake.take("r1", "b", 0, series(0, "loss"))
    with pytest.raises(TooLargeError, match="has 2 files"):
        intake.take("r1", "c", 0, series(0, "loss"))


def test_series_are_left_out_when_a_user_has_too_many_names(site: Site) -> None:
    intake = site.intake(names_per_user=3)
    intake.take("r1", "a", 0, begin("r1") + b"".join(series(code, f"m{code}") for code in range(5)), user="ada")
    assert site.detail("r1")["left_out"] == {"series": 2, "samples": 2}
    for intake_now in (intake, site.intake(names_per_user=3)):
        file = f"{id(intake_now)}"
        intake_now.take("r2", file, 0, begin("r2") + series(0, "m1") + series(1, "other"), user="ada")
        assert list(site.detail("r2")["series"]) == ["run:r2 m1"]
    intake.take("r3", "a", 0, begin("r3", "bob") + series(0, "other"), user="bob")
    assert list(site.detail("r3")["series"]) == ["run:r3 other"]


def test_series_are_left_out_when_a_user_has_too_many_in_all_runs(site: Site) -> None:
    intake = site.intake(series_per_user=3)
    for run in ("r1", "r2"):
        intake.take(run, "a", 0, begin(run) + series(0, "m0") + series(1, "m1"), user="ada")
    assert list(site.detail("r2")["series"]) == ["run:r2 m0"]


def test_codes_are_bounded_when_every_file_gives_its_own(site: Site) -> None:
    intake = site.intake(series=2)
    intake.take("r1", "a", 0, begin("r1"))
    for number in range(15):
        intake.take("r1", f"f{number}", 0, series(0, "loss") + series(1, "accuracy"))
    detail = site.detail("r1")
    assert sum(len(file["series"]) for file in detail["files"].values()) == 20
    assert detail["left_out"]["series"] == 10


def test_words_are_cut_and_left_out_when_they_are_too_many_or_too_long(site: Site) -> None:
    intake = site.intake(params=3, param_chars=100, text_chars=1200, marks=2, devices=2)
    marks = [("epoch", "0"), ("epoch", "nan"), ("phase", "x" * 300), ("phase", "a"), ("phase", "b")]
    events: list[dict[str, Any]] = [
        {"event": "params", "params": {"a": "x" * 500, "b": 1, "c": None, "d": "one too many"}},
        {"event": "params", "params": {"a": "changed"}},
        {"event": "tags", "tags": {"k" * 300: "long key", "t": "y"}},
        *({"event": "mark", "kind": kind, "name": name, "at": NOW} for kind, name in marks),
        *({"event": "exception", "text": f"{number} {'z' * 20_000}"} for number in range(30)),
        {"event": "moment", "moment": "running", "at": NOW},
    ]
    about: dict[str, Any] = {
        "command": ["python", "w" * 900, "v" * 900],
        "devices": ["0", "1", "²", "3"],
        "host": "n1",
        "name": "n" * 5000,
    }
    intake.take("r1", "a", 0, begin("r1", **about) + b"".join(map(encode_event, events)))
    summary = site.records.run_record("r1").summary  # type: ignore[union-attr]
    assert summary.params == {"a": "changed", "b": "1", "c": "None"}
    assert summary.tags == {"t": "y"}
    assert (summary.about.command, summary.about.devices) == (["python", "w" * 900], ["0", "1"])
    detail = site.detail("r1")
    assert [(mark["kind"], mark["name"]) for mark in detail["marks"]] == [("epoch", "0"), ("phase", "a")]
    assert (len(detail["exceptions"]), max(map(len, detail["exceptions"]))) == (20, 8001)
    assert detail["left_out"] == {"devices": 2, "command words": 1, "params": 1, "tags": 1, "marks": 3}


def test_piece_ends_before_what_is_too_much_when_it_holds_many_frames_or_samples(site: Site) -> None:
    intake = site.intake(piece_frames=100, piece_samples=1000)
    frames = [begin("r1"), *(series(0, "loss") for _ in range(80))]  # two frames each
    data = b"".join(frames)
    offset, pieces = 0, 0
    while offset < len(data):
        offset = intake.take("r1", "a", offset, data[offset:]).offset
        pieces += 1
    assert pieces == 2
    many = [encode_samples([0] * 700, [NOW * 1000] * 700, [NO_STEP] * 700, [0.0] * 700) for _ in range(3)]
    result = intake.take("r1", "a", len(data), b"".join(many))
    assert result.offset == len(data) + len(many[0])


def test_moments_are_kept_when_a_run_reports_other_ones_later(site: Site) -> None:
    intake = site.intake()
    moments = [encode_event({"event": "moment", "moment": "running", "at": NOW - 1000 * number}) for number in range(9)]
    intake.take("r1", "a", 0, begin("r1", host="n1", devices=["0"]) + b"".join(moments))
    assert len(site.records.open_allocations()) == 1
