"""Attacks on the intake of runs that once worked, sent to the server as they were: none works, and the site goes on."""

import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from clusters.opened import metrics_of, records_of
from clusters.private_site import ADA, BOB, NOW, PEOPLE, PrivateSite, job, private_site, run, units_of
from clusters.site_contents import Thing, read_contents
from fastapi.testclient import TestClient
from httpx2 import Response
from tracking.site import overwrite_stored

from clusterscape.model import UnixMs
from clusterscape.model.run_frames import HEAD, MAGIC, NO_STEP, encode_event, encode_samples
from clusterscape.store.metrics.contract import ListedMetricStore

MIB = 2**20
OWNERS = {run(person): person for person in PEOPLE}


@dataclass
class Attacked:
    """A private site that mallory (ADA) attacks; BOB is the victim."""

    site: PrivateSite
    folder: Path
    client: TestClient

    def send(self, target: str, data: bytes, *, file: str = "tracker.spool", by: str = ADA) -> Response:
        path = f"/api/v1/runs/{target}/files/{file}"
        return self.client.post(path, content=data, headers={"x-as": by})

    def get(self, path: str, *, by: str = ADA) -> Response:
        return self.client.get(f"/api/v1{path}", headers={"x-as": by})

    def contents(self) -> dict[Thing, str]:
        return read_contents(self.folder, cast(ListedMetricStore, self.site.context.metrics), OWNERS)

    def check_goes_on(self) -> None:
        """Lists answer for everybody, upkeep works, and what is sent next is taken in."""
        for by in ("operator", *PEOPLE):
            for path in ("/runs", "/runs/tree", "/workloads?limit=100", "/cluster"):
                assert self.get(path, by=by).status_code == 200, (path, by)
        metrics_of(self.site.context).maintain(now_ms=UnixMs(NOW + 3_600_000))
        records_of(self.site.context).remove_ended_before(UnixMs(NOW - 30 * 86_400_000))
        assert self.send("fine", begin("fine") + series(0, "loss") + sample(0)).status_code == 200


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Attacked]:
    with private_site(tmp_path) as site, site.client(is_private=True) as client:
        yield Attacked(site, tmp_path, client)


def begin(name: str, **fields: object) -> bytes:
    about = {"user": ADA, "name": "x.py", "host": "n2", "command": ["x"], "devices": ["0"], **fields}
    return encode_event({"event": "run", "run": name, "queued_at": NOW - 1000, "params": {}, **about})


def series(code: int, name: str, unit: str | None = None, scope: str = "run") -> bytes:
    event = {"event": "series", "code": code, "name": name, "unit": unit, "scope": scope, "method": "measured"}
    return encode_event(event)


def sample(code: int, time_us: int = NOW * 1000, value: float = 1.0) -> bytes:
    return encode_samples([code], [time_us], [NO_STEP], [value])


def raw_event(text: bytes) -> bytes:
    return HEAD.pack(MAGIC, 1, len(text), zlib.crc32(text)) + text


def problem(answer: Response) -> str:
    return str(answer.json()["error"]["message"])


# ownership


def test_run_is_not_taken_over_when_somebody_sends_a_run_event_to_it(attacked: Attacked) -> None:
    before = attacked.contents()
    for data in (begin(run(BOB)), begin(run(BOB), user=BOB), begin(run(BOB), user=None)):
        assert attacked.send(run(BOB), data, file="zz.spool").status_code == 403
    assert attacked.contents() == before
    assert attacked.get(f"/runs/{run(BOB)}").status_code == 404
    assert attacked.get(f"/runs/{run(BOB)}", by=BOB).json()["row"]["user"] == BOB


def test_curve_of_a_run_is_not_read_when_another_run_names_its_unit(attacked: Attacked) -> None:
    victim = f"run:{run(BOB)}"
    answer = attacked.send("spy", begin("spy") + series(0, "loss", victim) + sample(0))
    assert (answer.status_code, "may not write samples of" in problem(answer)) == (422, True)
    assert attacked.get("/runs/spy").status_code == 404, "nothing of a refused piece is kept"
    assert attacked.get(f"/series?metric=gpu_util_ratio&unit={victim}").status_code == 404
    assert attacked.get(f"/series?metric=gpu_util_ratio&unit={victim}", by=BOB).status_code == 200


def test_samples_of_a_gpu_stay_when_a_run_names_it(attacked: Attacked) -> None:
    attacked.site.ingest.absorb()  # it knows the cluster's GPUs and who holds them
    gpu = units_of(BOB)[0]
    before = {thing: text for thing, text in attacked.contents().items() if thing.key == gpu}
    moment = encode_event({"event": "moment", "moment": "running", "at": NOW - 1000})
    data = begin("spy") + moment + series(0, "gpu_util_ratio", gpu, "device") + sample(0, value=0.0)
    assert attacked.send("spy", data).status_code == 200
    assert {thing: text for thing, text in attacked.contents().items() if thing.key == gpu} == before
    held = attacked.get("/workloads/run:spy").json()["allocations"]
    assert held == [], "the scheduler says that the GPU is somebody else's"
    line = attacked.get("/runs/spy").json()["series"]
    assert [(row["unit"], row["place"]) for row in line] == [(f"run:spy/at/{gpu}", gpu)], "its own view still has it"


def test_hang_is_not_shown_on_a_job_when_a_run_of_another_user_names_it(attacked: Attacked) -> None:
    number = job(BOB).removeprefix("slurm:")
    ranks = encode_event({"event": "ranks", "job": f"{BOB}-host:29500", "slurm_job": number, "ranks": [0]})
    assert attacked.send("spy", begin("spy") + ranks + looks()).status_code == 200
    assert [row["run"] for row in attacked.get("/hangs").json()["rows"]] == ["spy", run(ADA)]
    assert attacked.get(f"/hangs?workload={job(BOB)}", by="operator").json()["rows"] == []
    assert attacked.get(f"/runs/{run(BOB)}/hang", by=BOB).json()["runs"] == [run(BOB)]


def looks(**rank: object) -> bytes:
    """Two looks at one rank."""
    look = {"ranks": {"0": {"rank": 0, "process": {"state": "D"}, **rank}}, "world_size": 1}
    events = [{"event": "hang_look", "at": NOW - 4000, "number": number, "look": look} for number in (1, 2)]
    return b"".join(map(encode_event, events))


def test_hangs_answer_when_a_look_contradicts_itself_or_is_too_large(attacked: Attacked) -> None:
    groups = {"0": {"enqueued": 2, "completed": 1, "members": [0, 1]}}
    call = {"group": "0", "sequence": 2, "operation": "all_reduce"}
    far = f"send {'9' * 5000}->1"
    odd: dict[str, tuple[dict[str, object], bool]] = {
        "unlisted": ({"has_recorder": True, "calls": [call]}, False),
        "misplaced": ({"rank": 5}, False),
        "negative": ({"rank": -1}, False),
        "far": ({"has_recorder": True, "groups": groups, "calls": [call | {"operation": far, "is_p2p": True}]}, True),
        "crowded": ({"groups": {str(at): {"enqueued": at} for at in range(1000)}}, False),
    }
    for name, (rank, is_kept) in odd.items():
        assert attacked.send(name, begin(name) + looks(**rank)).status_code == 200
        assert attacked.get(f"/runs/{name}").json()["left_out"] == ({} if is_kept else {"looks": 2}), name
        assert attacked.get(f"/runs/{name}/hang").status_code == 200, name
        assert attacked.get("/hangs", by="operator").status_code == 200, name


# what is malformed


MALFORMED: list[tuple[bytes, str]] = [
    (begin("odd", workload=[]), "$.workload"),
    (begin("odd", command=5), "$.command"),
    (begin("odd", devices=["1" * 5000] * 500), "$.devices"),
    (begin("odd", devices=["1"] * 5000), "$.devices"),
    (begin("odd", params=[]), "$.params"),
    (begin("odd", params={"a": {"b": 1}}), "$.params"),
    (begin("odd", queued_at=9 * 10**15), "$.queued_at"),
    (begin("odd", queued_at=-(9 * 10**15)), "$.queued_at"),
    (begin("odd", host="n1:0/../x"), "$.host"),
    (begin("odd", mig=[{"gpu": "0", "instance": 1}]), "$.mig"),
    (begin("odd", surprise=1), "surprise"),
    (begin("odd") + encode_event({"event": "nonsense"}), "nonsense"),
    (begin("odd") + encode_event({"event": "mark", "kind": "epoch", "name": 5, "at": NOW}), "$.name"),
    (begin("odd") + encode_event({"event": "moment", "moment": "running", "at": 9 * 10**15}), "$.at"),
    (begin("odd") + encode_event({"event": "end", "state": "odd", "at": NOW}), "$.state"),
    (begin("odd") + encode_event({"event": "end", "state": "failed", "at": NOW + 10 * 86_400_000}), "hours ahead"),
    (begin("odd") + encode_event({"event": "series", "code": 2**32, "name": "a"}), "$.code"),
    (begin("odd") + encode_event({"event": "process", "rank": -1}), "$.rank"),
    (begin("odd") + encode_event({"event": "dropped", "samples": 2**60}), "$.samples"),
    (begin("odd") + encode_event({"event": "environment", "git": {"diff": 5}}), "$.git.diff"),
    (begin("odd") + raw_event(b'{"event":"nonsense","deep":' + b"[" * 9999 + b"]" * 9999 + b"}"), "nonsense"),
    (begin("odd") + raw_event(b'{"event":"params","params":' + b'{"a":' * 9999 + b"1" + b"}" * 10_000), "$.params"),
]  # fmt: skip
"""A piece, and the field that its refusal names."""


def test_piece_is_refused_whole_with_its_field_named_when_an_event_is_malformed(attacked: Attacked) -> None:
    before, wrong = attacked.contents(), []
    for number, (data, field) in enumerate(MALFORMED):
        answer = attacked.send("odd", data)
        if answer.status_code != 422 or field not in problem(answer):
            wrong.append(f"{number}: {field}: {answer.status_code} {answer.text}")
    assert not wrong, "\n".join(wrong)
    assert attacked.contents() == before
    attacked.check_goes_on()


def test_error_names_file_and_byte_and_hints_at_versions_when_an_event_is_unknown(attacked: Attacked) -> None:
    first = begin("odd")
    answer = attacked.send("odd", first + encode_event({"event": "later", "than": "us"})).json()["error"]
    assert answer["message"].startswith(f"tracker.spool: the frame at byte {len(first)} is not an event of a run")
    assert "version" in answer["hint"]


def test_bytes_that_are_no_text_are_refused_when_an_event_holds_them(attacked: Attacked) -> None:
    for text in (b'{"event":"run","user":"\\ud800"}', b'{"event":"run","user":"\xff"}', b"[" * 100_000, b'{"event":'):
        assert attacked.send("odd", raw_event(text)).status_code == 422
    kind = b"{}"
    assert attacked.send("odd", HEAD.pack(MAGIC, 7, len(kind), zlib.crc32(kind)) + kind).status_code == 422
    attacked.check_goes_on()


# what is stored already


DAMAGES: list[dict[str, Any]] = [
    {"about": {"user": BOB, "workload": []}},
    {"about": {"user": BOB, "command": 5}},
    {"about": {"user": BOB, "queued_at": "now", "devices": 3}},
    {"about": []},
    {"params": None},
    {"moments": {"running": "soon"}},
    {"end": {"state": 5}},
    {"figures": {"energy": {"joules": None, "scope": "process", "method": "x"}}},
    {"figures": {"work": {}}},
    {"samples": "many"},
]
"""Fields of the stored document, as earlier versions stored what they were sent."""


def test_lists_answer_and_show_the_run_as_damaged_when_its_stored_record_is(attacked: Attacked) -> None:
    records = records_of(attacked.site.context)
    stored = records.run_record(run(BOB))
    assert stored is not None
    undamaged = msgspec.to_builtins(stored.summary)
    for damage in DAMAGES:
        overwrite_stored(records, run(BOB), "summary", {**undamaged, **damage})
        attacked.site.context.changes.bump_runs()
        row = next(row for row in attacked.get("/runs", by="operator").json() if row["run"] == run(BOB))
        assert (row["state"], row["cause"].startswith("its stored record is damaged")) == ("unknown", True), damage
        for path in ("/tree", f"/{run(BOB)}", f"/workloads/{run(BOB)}", f"/metrics?run={run(BOB)}"):
            assert attacked.get(f"/runs{path}", by="operator").status_code == 200, (path, damage)
        assert attacked.get("/runs", by=BOB).status_code == 200, damage
        answer = attacked.send(run(BOB), series(0, "loss"), file="more.spool", by=BOB)
        assert (answer.status_code, "is damaged" in problem(answer)) == (422, True)
    attacked.check_goes_on()


def test_run_is_read_without_its_details_when_those_are_damaged(attacked: Attacked) -> None:
    records = records_of(attacked.site.context)
    for body in ({"series": {"x": [1]}}, {"marks": 5}, {"marks": [{"kind": "epoch", "name": 5}]}, {"steps": [1]}):
        overwrite_stored(records, run(BOB), "detail", body)
        for path in (f"/runs/{run(BOB)}", f"/runs/series?run={run(BOB)}&metric=loss&axis=epoch"):
            assert attacked.get(path, by=BOB).status_code == 200, (path, body)


def test_curves_answer_when_a_stored_mark_is_no_epoch(attacked: Attacked) -> None:
    marks = [{"kind": "epoch", "name": name, "at": NOW} for name in ("one", "nan", "1")]
    overwrite_stored(records_of(attacked.site.context), run(BOB), "detail", {"marks": marks})
    for axis in ("epoch", "time"):
        answer = attacked.get(f"/runs/series?run={run(BOB)}&metric=loss&axis={axis}", by=BOB)
        assert answer.status_code == 200


# times, codes and amounts


def test_compaction_and_retention_work_when_samples_have_impossible_times(attacked: Attacked) -> None:
    times_ms = [9 * 10**15, -9 * 10**15, 0, NOW + 86_400_000]
    odd = b"".join(sample(0, time_ms * 1000) for time_ms in times_ms)
    assert attacked.send("odd", begin("odd") + series(0, "loss") + odd + sample(0)).json()["samples"] == 1
    assert attacked.get("/runs/odd").json()["left_out"] == {"samples": 4}
    attacked.check_goes_on()
    newest = attacked.site.context.metrics.info().newest_at
    assert newest is not None
    assert newest <= NOW + 3_600_000


def peak_bytes(attacked: Attacked, target: str, data: bytes, *, status: int = 200) -> int:
    """Peak memory of taking in a piece."""
    tracemalloc.start()
    try:
        assert attacked.send(target, data).status_code == status
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_stays_when_a_code_is_the_largest_there_is(attacked: Attacked) -> None:
    """Before: 2.6 GB for 125 bytes."""
    code = 2**32 - 1
    data = begin("odd") + series(code, "loss") + sample(code)
    assert peak_bytes(attacked, "odd", data) < 32 * MIB
    assert attacked.get("/runs/odd").json()["series"][0]["count"] == 1


@pytest.mark.parametrize("names", [20_000, 200_000])
def test_memory_stays_when_a_run_has_very_many_names(attacked: Attacked, names: int) -> None:
    """Before: 7.2 GB, and 19 GB until it was killed."""
    events = b"".join(series(code, f"m{code}") for code in range(names))
    data = begin("odd") + events
    for first in range(0, names, 50_000):
        codes = range(first, min(names, first + 50_000))
        times_us = [NOW * 1000 + code * 1000 for code in codes]
        data += encode_samples(codes, times_us, [NO_STEP] * len(codes), [1.0] * len(codes))
    limit = attacked.site.runs.max_piece_bytes
    if len(data) > limit:
        assert attacked.send("odd", data).status_code == 413
    offset = 0
    while offset < len(data):
        path = f"/api/v1/runs/odd/files/tracker.spool?offset={offset}"
        tracemalloc.start()
        try:
            answer = attacked.client.post(path, content=data[offset : offset + limit], headers={"x-as": ADA})
            assert tracemalloc.get_traced_memory()[1] < 300 * MIB
        finally:
            tracemalloc.stop()
        offset = answer.json()["offset"]
    shown = attacked.get("/runs/odd").json()
    assert len(shown["series"]) == 2000
    assert shown["left_out"] == {"series": names - 2000, "samples": names - 2000}
    attacked.check_goes_on()


def test_memory_stays_when_a_frame_unpacks_to_far_more_than_it_has(attacked: Attacked) -> None:
    count = 100 * MIB // 28
    raw = struct.pack("<I", count) + bytes(28 * count)
    packed = zlib.compress(raw, 9)
    frame = HEAD.pack(MAGIC, 2, len(packed), zlib.crc32(packed)) + packed
    del raw
    assert peak_bytes(attacked, "odd", begin("odd") + frame, status=413) < 150 * MIB
    assert attacked.get("/runs/odd").status_code == 404


def test_memory_stays_when_a_run_has_very_many_params(attacked: Attacked) -> None:
    params = {f"p{at}": "v" * 100 for at in range(50_000)}
    assert peak_bytes(attacked, "odd", begin("odd") + encode_event({"event": "params", "params": params})) < 100 * MIB
    shown = attacked.get("/runs/odd").json()
    assert (len(shown["row"]["params"]), shown["left_out"]) == (1000, {"params": 49_000})


def test_numbers_are_shown_when_values_are_beyond_reason(attacked: Attacked) -> None:
    odd = [1e308, -1e308, 1e300, float("inf"), float("nan"), 5e-324]
    params = {"batch-size": "9" * 5000, "batch_size": "²", "bs": "0"}
    data = begin("odd", params=params) + b"".join(
        series(code, name, unit, scope)
        for code, (name, unit, scope) in enumerate(
            [("samples", None, "run"), ("energy_joules", "n2:0", "device"), ("energy_joules", "run:odd/n2:0", "process"),
             ("gpu_util_ratio", "n2:0", "device"), ("throughput", None, "run"), ("process_cpu_cores", None, "tree")]
        )
    )  # fmt: skip
    for code in range(6):
        steps = [2**62, -(2**63) + 1, 5, NO_STEP, 2**53, 0]
        data += encode_samples([code] * 6, [NOW * 1000 + 1000 * at for at in range(6)], steps, odd)
    data += encode_event({"event": "moment", "moment": "running", "at": NOW})
    assert (
        attacked.send("odd", data + encode_event({"event": "end", "state": "failed", "at": NOW - 5})).status_code == 200
    )
    for path in (
        "/runs",
        "/runs/odd",
        "/runs/tree",
        "/runs/series?run=odd&metric=samples&metric=joules_per_work&axis=step",
    ):
        assert attacked.get(path).status_code == 200, path
    attacked.check_goes_on()


def test_piece_is_refused_when_it_is_too_large(attacked: Attacked) -> None:
    data = bytes(attacked.site.runs.max_piece_bytes + 1)
    answer = attacked.send("odd", data)
    assert (answer.status_code, "limits.runs.piece_bytes" in answer.json()["error"]["hint"]) == (413, True)
    event = begin("odd") + encode_event({"event": "exception", "text": "x" * (9 * MIB)})
    answer = attacked.send("odd", event)
    assert (answer.status_code, "limits.runs.event_bytes" in answer.json()["error"]["hint"]) == (413, True)
