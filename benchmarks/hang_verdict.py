"""Verdicts on hangs with known causes, next to PyTorch's own analyzer on the same dumps, and the time for 1,024 ranks.

Seeds 0-89 were seen while the verdict was written; docs/design/hangs.md tells which of them were first looked at unseen. 90-109
are held back. NCCL's dumps and answers are simulated from their format (tests/hangs); gloo's ranks are real.
"""

import argparse
import contextlib
import io
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.report import Report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
TUNED, HELD_BACK = range(30), range(90, 110)
STRAGGLERS = range(1100, 1200)
RANKS = 1024
ENTRIES = 300
ALIKE = {"absent": "missing", "dead": "missing", "deadlock": "missing", "storage": "missing", "slow": "missing",
         "mismatch": "mismatch", "kernel": "state", "link": "none"}  # fmt: skip
"""What torchfrtrace can say of each class: it has no stacks, so ranks that do not join are one class."""
GLOO = """\
import sys
from pathlib import Path
import torch.distributed
from hangs.gloo import KINDS, RIGHT, hang
from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.collect.hangs.reading import read_looks
for kind in KINDS:
    for seed in map(int, sys.argv[2:]):
        hung = hang(kind, seed, Path(sys.argv[1]) / f"{kind}{seed}")
        verdict = judge_hang(read_looks(hung.looks))
        print(kind, seed, verdict.kind.value == RIGHT[kind], verdict.ranks == (hung.rank,))
"""


def score_ours(seeds: Iterable[int], *, has_recorder: bool) -> tuple[Counter[str], int, list[str]]:
    """Right classes, ranks and both; the number of cases; and what was wrong."""
    from hangs.made_up import write_case
    from hangs.simulated import KINDS

    from clusterscape.analyze.hang.verdict import judge_hang
    from clusterscape.collect.hangs.reading import read_looks

    score: Counter[str] = Counter()
    wrong, cases = [], 0
    for kind in KINDS:
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                case = write_case(kind, seed, Path(folder), has_recorder=has_recorder)
                verdict = judge_hang(read_looks(list(case.looks)))
            is_kind = verdict.kind == kind
            is_rank = frozenset(verdict.ranks) in {case.ranks, *case.others_right}
            is_admitted = (is_kind and is_rank) or kind in verdict.alternatives
            score += Counter(kind=is_kind, rank=is_rank, both=is_kind and is_rank, admitted=is_admitted)
            cases += 1
            if not (is_kind and is_rank):
                wrong.append(f"{kind} {seed} {case.way}: {sorted(case.ranks)} → {verdict.kind} {verdict.ranks}")
    return score, cases, wrong


def score_torch(seeds: Iterable[int]) -> tuple[Counter[str], int]:
    """The same of torchfrtrace on the same simulated hangs; names, format and version as it needs them."""
    from hangs.made_up import dump_of
    from hangs.simulated import KINDS, simulate

    score: Counter[str] = Counter()
    cases = 0
    for kind in KINDS:
        for seed in seeds:
            simulation = simulate(kind, seed)
            lost = simulation.fault.rank if kind == "dead" else None
            dumps = {rank: dump_of(simulation, rank, "2.10", 2000) for rank in range(simulation.world) if rank != lost}
            said, ranks = ask_torch(dumps)
            cases += 1
            is_kind = said == ALIKE[kind]
            expected = {simulation.fault.rank} if kind != "link" else set()
            is_rank = ranks == expected
            score += Counter(kind=is_kind, rank=is_rank, both=is_kind and is_rank, crashed=said == "error")
    return score, cases


def ask_torch(dumps: dict[int, dict[str, Any]]) -> tuple[str, set[int]]:
    """What torchfrtrace says of the first collective that it finds wrong, and of which ranks."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    logging.disable(logging.CRITICAL)  # it prints thousands of lines
    with tempfile.TemporaryDirectory() as folder:
        for rank, dump in dumps.items():
            (Path(folder) / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
        arguments = JobConfig().parse_args([folder, "-p", "nccl_trace_rank_", "--allow-incomplete-ranks"])
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                details, version = read_dir(arguments)
                database = build_db(details, arguments, version)
            except Exception:  # whatever it raises is its answer
                return "error", set()
    wrong = [collective for collective in database.collectives if not collective.pass_check]
    if not wrong:
        return "none", set()
    first = wrong[0]
    if first.missing_ranks:
        return "missing", set(first.missing_ranks)
    mismatches = first.mismatch_collectives or {}
    is_state = all("STATE" in str(mismatch.type_of_mismatch) for mismatch in mismatches.values())
    return ("state" if is_state else "mismatch"), set(mismatches)


def count_stragglers() -> int:
    """Slow runs that are called hung."""
    from hangs.made_up import write_case

    from clusterscape.analyze.hang.verdict import judge_hang
    from clusterscape.collect.hangs.reading import read_looks

    hung = 0
    for seed in STRAGGLERS:
        with tempfile.TemporaryDirectory() as folder:
            case = write_case("slow", seed, Path(folder), has_recorder=seed % 4 > 0)
            hung += judge_hang(read_looks(list(case.looks))).is_hang
    return hung


def measure_many(entries: int) -> tuple[float, bool]:
    """Seconds of the whole command on 1,024 ranks' pickles with ``entries`` calls each, and whether the rank is right."""
    from hangs import made_up
    from hangs.simulated import Fault, Group, Operation, Simulation

    everyone = tuple(range(RANKS))
    groups = [Group("0", "default_pg", everyone)]
    groups += [Group(str(1 + n), "mesh_tp", tuple(range(8 * n, 8 * n + 8))) for n in range(RANKS // 8)]
    program = {
        rank: [Operation("0" if n % 4 == 3 else str(1 + rank // 8), "all_reduce", 4096) for n in range(entries)]
        for rank in everyone
    }
    simulation = Simulation(
        0, "absent", RANKS, groups, list(program.values()), Fault("absent", 700, entries - 2, "loader"), 1
    )
    assert simulation.settle(entries - 2)
    with tempfile.TemporaryDirectory() as folder:
        for rank in everyone:
            dump = made_up.dump_of(simulation, rank, "2.10", entries)
            (Path(folder) / f"rank{rank}").write_bytes(pickle.dumps(dump, protocol=2))
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "clusterscape.cli", "hang", folder],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
        return time.perf_counter() - begun, "Rank 700 " in done.stdout


def score_gloo(seeds: Iterable[int]) -> tuple[int, int]:
    """Right verdicts on real gloo ranks, and their number."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", GLOO, folder, *map(str, seeds)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"},
        )
    lines = [line.split() for line in done.stdout.splitlines()]
    for line in lines:
        if line[2:] != ["True", "True"]:
            print("wrong:", *line)
    return sum(line[2:] == ["True", "True"] for line in lines), len(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuned", action="store_true", help="only the seeds used while writing")
    seeds, label = (TUNED, "tuned") if parser.parse_args().tuned else (HELD_BACK, "held-back")
    report = Report(f"Verdicts on hangs ({label} seeds; NCCL's files are simulated, gloo's ranks are real)")
    ours, cases, wrong = score_ours(seeds, has_recorder=True)
    torch, _ = score_torch(seeds)
    name = "torchfrtrace"
    for key, what in (("kind", "class"), ("rank", "ranks"), ("both", "class and ranks")):
        report.add(
            f"{what} right, recorder and stacks, {cases} cases", 100 * ours[key] / cases, "%", peer=100 * torch[key] / cases,
            peer_name=name, budget=95 if key == "both" else None, higher_is_better=True,
        )  # fmt: skip
    ras, ras_cases, ras_wrong = score_ours(seeds, has_recorder=False)
    report.add(
        f"class and ranks right, RAS and stacks, {ras_cases} cases",
        100 * ras["both"] / ras_cases,
        "%",
        higher_is_better=True,
    )
    report.add(
        f"class right or named as an alternative, RAS and stacks, {ras_cases} cases",
        100 * ras["admitted"] / ras_cases,
        "%",
        budget=95,
        higher_is_better=True,
    )
    right, gloo_cases = score_gloo([*seeds][:5])
    report.add(
        f"class and rank right, real gloo ranks, {gloo_cases} cases",
        100 * right / gloo_cases,
        "%",
        budget=95,
        higher_is_better=True,
    )
    report.add("stragglers of 100 called hung", count_stragglers(), "", budget=0)
    for entries in (ENTRIES, 2000):
        seconds, is_right = measure_many(entries)
        assert is_right
        report.add(
            f"{RANKS:,} dumps of {entries:,} calls, whole command",
            seconds,
            "s",
            budget=5 if entries == ENTRIES else None,
        )
    report.publish()
    print(f"torchfrtrace ended with an error in {torch['crashed']} of {cases} cases", *wrong, *ras_wrong, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
