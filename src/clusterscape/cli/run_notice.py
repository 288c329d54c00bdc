"""Shows what runs record before the first upload, and ``run --show-recorded``. Never prompts, so batch jobs are not blocked."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterscape.track.places import state_folder
from clusterscape.track.recording_notice import (
    RecordingNotice,
    ShownNotices,
    describe_whole,
    preview,
    summarize,
)
from clusterscape.track.reproduce import select_variables
from clusterscape.track.spooled import read_run
from clusterscape.track.tracked_run import RunRequest, child_environ


def announce(requests: Sequence[RunRequest], patterns: Sequence[str], targets: Sequence[str]) -> None:
    """Show the notice before runs start that are uploaded to ``targets``."""
    shown = ShownNotices(state_folder())
    names = select_variables(child_environ(requests[0]), patterns)
    new_targets = [target for target in targets if not shown.is_shown(target, names)]
    if new_targets:
        _print_notice(preview(requests, patterns), new_targets)
        shown.remember(new_targets, names)


def announce_recorded(folders: Sequence[Path], target: str, state: Path) -> None:
    """Show the notice before an upload of runs that were recorded without a server."""
    shown = ShownNotices(state)
    for folder in folders:
        run = read_run(folder)
        environ = (run.environment or {}).get("environ")
        names = list(environ) if isinstance(environ, Mapping) else []
        if not shown.is_shown(target, names):
            command = run.about.get("command")
            words = [str(word) for word in command] if isinstance(command, list) else []
            _print_notice(summarize(run.environment or {"cwd": run.about.get("cwd")}, [words]), [target])
            shown.remember([target], names)


def show_recorded(request: RunRequest, patterns: Sequence[str], targets: Sequence[str], *, as_json: bool) -> None:
    """Print what would be recorded and sent."""
    recording = describe_whole(request, patterns)
    if as_json:
        print(json.dumps({"to": list(targets), **recording}, indent=2, ensure_ascii=False))
        return
    environment = recording["environment"]
    run = recording["run"]
    assert isinstance(environment, dict)
    assert isinstance(run, dict)
    notice = summarize(environment, [run["command"]])
    print("\n".join(notice.lines(targets)))
    for name, value in notice.variables.items():
        print(f"  {name}={value}")
    git = environment.get("git")
    if isinstance(git, dict) and git["diff"]:
        print(git["diff"])


def _print_notice(notice: RecordingNotice, targets: Sequence[str]) -> None:
    sys.stderr.write("".join(f"clusterscape: {line}\n" for line in notice.lines(targets)))
