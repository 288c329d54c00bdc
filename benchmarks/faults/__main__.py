"""``python -m benchmarks.faults record|simulate|answer|score``: see ``--help`` of each."""

import argparse
import json
from pathlib import Path

from benchmarks.faults.kinds import Source, draw_cases
from benchmarks.faults.recording import record_cases

CASES = Path(__file__).parents[2] / "build/faults"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "simulate"):
        command = commands.add_parser(name)
        command.add_argument("--seeds", type=int, nargs=2, default=(0, 2), metavar=("FIRST", "END"))
        command.add_argument("--folder", type=Path, default=CASES)
        command.add_argument("--seconds", type=float, default=240.0, help="stop after this time; run again to go on")
        command.add_argument("--kinds", nargs="*", default=[])
    for name in ("answer", "score"):
        command = commands.add_parser(name)
        command.add_argument("--folder", type=Path, default=CASES)
        command.add_argument("--half", choices=("tuning", "held-back", "both"), default="tuning")
        command.add_argument("--tools", nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.command in ("record", "simulate"):
        source: Source = "recorded" if arguments.command == "record" else "simulated"
        cases = [case for seed in range(*arguments.seeds) for case in draw_cases(source, seed)]
        cases = [case for case in cases if not arguments.kinds or any(kind in case.case_id for kind in arguments.kinds)]
        if source == "recorded":
            print(record_cases(cases, arguments.folder, arguments.seconds), "cases recorded")
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
