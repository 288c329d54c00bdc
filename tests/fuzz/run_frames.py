"""Fuzzes the intake of runs with mutated events and samples: ``python -m fuzz.run_frames EXAMPLES FOLDER``.

A piece may be refused with one of our errors. Whatever it is, the run of somebody else stays as it was, all samples lie in the
sender's own namespace, what is stored can be read, listed and compacted, and memory stays. The last line says how it went.
"""

import dataclasses
import json
import random
import resource
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any

import msgspec
from fuzz.json_mutator import mutate_json
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tracking.site import NOW, RunStores, run_stores, spooled

from clusterscape.errors import ClusterScapeError
from clusterscape.model import UnixMs
from clusterscape.model.run_frames import HEAD, MAGIC, NO_STEP, encode_event, encode_samples
from clusterscape.model.runs import run_of_unit
from clusterscape.query.runs.series import LineRequest

MINE, VICTIM = "mine", "victim"
LOOKED_AT_EVERY = 25
WORDS = (
    "run:victim",
    "victim",
    "n1:0",
    "run",
    "series",
    "epoch",
    "device",
    "9" * 400,
    "²",
    "\ud800",
    "nan",
    "batch-size",
)
CALLS = [
    {"group": "0", "sequence": 4, "operation": "all_reduce", "input_sizes": [[8, 2]], "types": ["f"], "is_done": True},
    {"group": "0", "sequence": 5, "operation": "all_reduce", "input_sizes": [[8, 2]], "state": "started", "order": 1},
    {"group": "0", "sequence": 6, "operation": "send 0->1", "is_p2p": True, "order": 2, "created_ns": NOW * 10**6},
]
COMMUNICATORS = [
    {
        "name": f"c{at}", "size": 2, "counts": {"0": {"AllReduce": at}, "1": {"AllReduce": 1}}, "dead": [1],
        "processes": {"0": ["n1", 7]}, "errors": {"1": "e"}, "unresponsive": [1],
    }
    for at in range(3)
]  # fmt: skip
LOOK = {
    "ranks": {
        str(rank): {
            "rank": rank,
            "has_recorder": True,
            "backend": "nccl",
            "groups": {"0": {"enqueued": 6, "completed": 4, "members": [0, 1], "description": "default_pg"}},
            "calls": CALLS[: 3 - rank],
            "stacks": [
                {"frames": [{"function": "f", "file": "a.py", "line": 3}], "is_main": True, "name": "MainThread"}
            ],
            "process": {"pid": 7, "state": "S", "wait_channel": "futex", "cpu_ticks": 9},
        }
        for rank in range(2)
    },
    "communicators": COMMUNICATORS,
    "world_size": 2,
    "notes": ["n"],
}
TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "event": "run", "run": MINE, "user": "mallory", "name": "a.py", "host": "n1", "devices": ["0", "1"], "pid": 7,
        "command": ["python", "a.py"], "cwd": "/", "queued_at": NOW - 1000, "params": {"batch-size": "8"},
        "mig": [{"gpu": 0, "instance": 1, "profile": "1g", "uuid": "MIG-1"}], "listeners": ["nvml"], "workload": "w",
    },
    {"event": "moment", "moment": "running", "at": NOW - 900},
    {"event": "series", "code": 0, "name": "loss", "unit": None, "scope": "run", "method": "measured"},
    {"event": "series", "code": 1, "name": "energy_joules", "unit": "n1:0", "scope": "device", "method": "measured"},
    {"event": "series", "code": 2, "name": "samples", "unit": f"run:{MINE}/rank1", "scope": "run", "method": "measured"},
    {"event": "process", "pid": 1, "rank": 1},
    {"event": "params", "params": {"bs": "16", "lr": 0.1}},
    {"event": "tags", "tags": {"name": "n"}},
    {"event": "mark", "kind": "epoch", "name": "1", "at": NOW - 800},
    {"event": "mark", "kind": "phase", "name": "validation", "at": NOW - 700},
    {"event": "listener", "listener": "nvml", "state": "failed", "message": "m", "ticks": 3, "missed": 1},
    {"event": "exception", "text": "ValueError: x"},
    {"event": "hang", "at": NOW - 150, "kind": "absent", "title": "t", "ranks": [1], "since": NOW - 160, "evidence": ["e"]},
    {"event": "ranks", "job": "10.0.0.1:29500", "slurm_job": "4711", "ranks": [0, 1], "world_size": 2},
    {"event": "hang_look", "at": NOW - 140, "number": 1, "look": LOOK},
    {"event": "hang_look", "at": NOW - 130, "number": 2, "look": LOOK},
    {"event": "hang_look", "at": NOW - 130, "number": 2, "look": {"ranks": {"0": {"rank": 0}}, "communicators": COMMUNICATORS}},
    {"event": "hang_end", "at": NOW - 120},
    {"event": "leftovers", "count": 2, "at": NOW},
    {"event": "dropped", "samples": 5},
    {"event": "environment", "git": {"commit": "c", "diff": "d", "is_dirty": True}, "cpu": "x", "driver": "name\nH200\n"},
    {"event": "end", "state": "failed", "cause": "c", "exit_code": 1, "at": NOW - 100},
)  # fmt: skip
CODES = (0, 1, 2, 3, 2**31, 2**32 - 1)
TIMES_US = (NOW * 1000, (NOW - 500) * 1000, 0, -1, 2**63 - 1, -(2**63), 9 * 10**18, (NOW + 3_000_000) * 1000)
STEPS = (NO_STEP, 0, 1, 2**53, 2**63 - 1, -(2**63) + 1, -1)
VALUES = (0.0, 1.0, -1.0, 1e308, -1e308, 1e100, float("inf"), float("-inf"), float("nan"), 5e-324)


def make_piece(rng: random.Random) -> bytes:
    """Events, some of them mutated, and samples; sometimes with bytes of it changed."""
    frames = [make_event(rng) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.8:
        frames.insert(0, encode_event(TEMPLATES[0]))
    frames += [make_samples(rng) for _ in range(rng.randint(0, 3))]
    data = bytearray(b"".join(frames))
    if rng.random() < 0.1:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def make_event(rng: random.Random) -> bytes:
    whole = json.dumps(rng.choice(TEMPLATES)).encode()
    if rng.random() < 0.15:
        whole = mutate_json(whole, 100_000, rng.getrandbits(32), WORDS, lambda data: _flip(data, rng))
    return frame(1, whole)


def make_samples(rng: random.Random) -> bytes:
    count = rng.choice((0, 1, 5, 200))
    columns = [[rng.choice(values) for _ in range(count)] for values in (CODES, TIMES_US, STEPS, VALUES)]
    encoded = encode_samples(*columns)  # type: ignore[arg-type]
    payload = encoded[HEAD.size :]
    return frame(2, _flip(payload, rng)) if rng.random() < 0.05 else encoded


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def frame(kind: int, payload: bytes) -> bytes:
    return HEAD.pack(MAGIC, kind, len(payload), zlib.crc32(payload)) + payload


class Watched:
    """A site with a victim's run, and its former state."""

    def __init__(self, stores: RunStores) -> None:
        self.stores = stores
        self.records, self.metrics = stores.records, stores.metrics
        series: dict[tuple[str, str | None, str], list[float]] = {("loss", None, "run"): [3.0, 2.0]}
        stores.intake.take(
            VICTIM, "tracker.spool", 0, spooled(VICTIM, series=series, about={"user": "bob"}), user="bob"
        )
        self.before = self._read_victim()
        self.taken = self.refused = self.sent = 0

    def send(self, data: bytes, rng: random.Random) -> None:
        self.sent += 1
        run = rng.choice((MINE, MINE, MINE, VICTIM))
        try:
            self.stores.intake.take(run, f"f{self.sent % 2000}", 0, data, user="mallory")
            self.taken += 1
        except ClusterScapeError:
            self.refused += 1
        assert self._read_victim() == self.before
        if self.sent % LOOKED_AT_EVERY == 0:
            self.look()

    def look(self) -> None:
        """Checks that all readers of runs work and that no sample lies outside the sender's namespace."""
        context, queries = self.stores.queries.context, self.stores.queries
        context.changes.bump_runs()
        shown: list[Any] = [*queries.runs.all(), queries.runs.tree()]
        stored = self.records.run(MINE)
        if stored is not None:
            assert stored.damage is None, stored.damage
            shown += [
                queries.runs.one(MINE),
                queries.runs.metrics([MINE]),
                queries.hangs.one(MINE),
                queries.hangs.all(),
            ]
            names = [series.metric for series in queries.runs.one(MINE).series][:20]
            for axis in ("time", "step", "epoch"):
                request = LineRequest(runs=[MINE], metrics=[*(names or ["loss"]), "joules_per_work"], axis=axis)
                queries.run_series.lines(request)
        json.dumps([dataclasses.asdict(answer) for answer in shown], allow_nan=False)
        self.metrics.maintain(now_ms=UnixMs(NOW + 3_600_000))
        units = set(self.metrics.latest(["loss"], at_ms=NOW, lookback_ms=2 * 10**9)["unit"])
        assert {run_of_unit(unit) for unit in units} <= {MINE, VICTIM}
        assert {held.workload for held in self.records.allocations()} <= {f"run:{MINE}", f"run:{VICTIM}"}
        assert all(run_of_unit(held.unit) in (MINE, VICTIM) for held in self.records.allocations())

    def _read_victim(self) -> str:
        stored = self.records.run(VICTIM)
        return "" if stored is None else msgspec.json.encode(stored).decode()


def main(examples: int, folder: Path) -> None:
    with run_stores(folder) as stores:
        watched = Watched(stores)
        watched.send(encode_event(TEMPLATES[0]), random.Random(0))
        watched.look()
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        warnings.simplefilter("error")

        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(st.integers(0, 2**64))
        def send(seed: int) -> None:
            rng = random.Random(seed)
            watched.send(make_piece(rng), rng)

        send()
        watched.look()
        grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) // 1024
    print(json.dumps({"taken": watched.taken, "refused": watched.refused, "grown_mib": grown_mib}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder))
