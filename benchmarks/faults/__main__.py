"""``python -m benchmarks.faults record|gpu|simulate|unpack|answer|score``: see ``--help`` of each."""

import argparse
import json
import os
from pathlib import Path

from benchmarks.faults.kinds import Case, Source, draw_cases
from benchmarks.faults.recording import record_cases

CASES = Path(__file__).parents[2] / "build/faults"
SOURCES: dict[str, Source] = {"record": "recorded", "gpu": "gpu", "simulate": "simulated"}


def record(cases: list[Case], folder: Path, seconds: float, archive_folder: Path | None) -> int:
    """Record cases, and pack them if a folder for archives is named."""
    if archive_folder is None:
        return record_cases(cases, folder, seconds)
    from benchmarks.faults.archive import CaseArchive

    archive = CaseArchive(archive_folder, workers=max(1, (os.cpu_count() or 2) - cases[0].ranks - 2))

    def pack(case: Path) -> bool:
        archive.add(case)
        return archive.is_full

    try:
        return record_cases(cases, folder, seconds, pack)
    finally:
        archive.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "gpu", "simulate"):
        command = commands.add_parser(name)
        command.add_argument("--seeds", type=int, nargs=2, default=(0, 2), metavar=("FIRST", "END"))
        command.add_argument("--folder", type=Path, default=CASES)
        command.add_argument("--seconds", type=float, default=240.0, help="stop after this time; run again to go on")
        command.add_argument("--kinds", nargs="*", default=[])
        command.add_argument("--ranks", type=int, help="of recorded cases; more than cores: a contended machine")
        command.add_argument("--archive", type=Path, help="pack the cases into files of at most 16 MiB in this folder")
    unpack = commands.add_parser("unpack")
    unpack.add_argument("archives", type=Path, nargs="+")
    unpack.add_argument("--folder", type=Path, default=CASES)
    for name in ("answer", "score"):
        command = commands.add_parser(name)
        command.add_argument("--folder", type=Path, default=CASES)
        command.add_argument("--half", choices=("tuning", "held-back", "both"), default="tuning")
        command.add_argument("--tools", nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.command == "unpack":
        from benchmarks.faults.archive import unpack_archives

        print(unpack_archives(arguments.archives, arguments.folder), "cases unpacked")
        return
    if arguments.command in SOURCES:
        source = SOURCES[arguments.command]
        cases = [case for seed in range(*arguments.seeds) for case in draw_cases(source, seed, arguments.ranks)]
        cases = [case for case in cases if not arguments.kinds or any(kind in case.case_id for kind in arguments.kinds)]
        if source != "simulated":
            print(record(cases, arguments.folder, arguments.seconds, arguments.archive), "cases recorded")
        else:
            from benchmarks.faults.simulated import simulate_cases

            print(simulate_cases(cases, arguments.folder), "cases simulated")
        return
    if arguments.command == "answer":
        from benchmarks.faults.answers import answer_cases

        answer_cases(arguments.folder, arguments.half, arguments.tools)
        return
    from benchmarks.faults.scoring import score_folder

    print(json.dumps(score_folder(arguments.folder, arguments.half), indent=1))


if __name__ == "__main__":
    main()
