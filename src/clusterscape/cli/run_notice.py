"""Shows what runs record before it is sent for the first time, and ``run --show-recorded``. Asks nothing: batch jobs go on."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterscape.track.places import state_folder
from clusterscape.track.recorded_variables import select
from clusterscape.track.recording_notice import (
    RecordingNotice,
    ShownNotices,
    describe_whole,
    preview,
    summarize,
)
from clusterscape.track.spooled import read_run
from clusterscape.track.tracked_run import RunRequest, child_environ


def announce(requests: Sequence[RunRequest], patterns: Sequence[str], targets: Sequence[str]) -> None:
    """Before runs start that are sent to ``targets``."""
    shown = ShownNotices(state_folder())
    names = select(child_environ(requests[0]), patterns)
    fresh = [target for target in targets if not shown.is_shown(target, names)]
    if fresh:
        _write(preview(requests, patterns), fresh)
        shown.remember(fresh, names)


def announce_recorded(folders: Sequence[Path], target: str, state: Path) -> None:
    """Before runs are sent that were recorded without a server."""
    shown = ShownNotices(state)
    for folder in folders:
        run = read_run(folder)
        environ = (run.environment or {}).get("environ")
        names = list(environ) if isinstance(environ, Mapping) else []
        if not shown.is_shown(target, names):
            command = run.about.get("command")
            words = [str(word) for word in command] if isinstance(command, list) else []
            _write(summarize(run.environment or {"cwd": run.about.get("cwd")}, [words]), [target])
            shown.remember([target], names)


def show_recorded(request: RunRequest, patterns: Sequence[str], targets: Sequence[str], *, as_json: bool) -> None:
    """Print what would be recorded and sent."""
    whole = describe_whole(request, patterns)
    if as_json:
        print(json.dumps({"to": list(targets), **whole}, indent=2, ensure_ascii=False))
        return
    environment = whole["environment"]
    run = whole["run"]
    assert isinstance(environment, dict)
    assert isinstance(run, dict)
    notice = summarize(environment, [run["command"]])
    print("\n".join(notice.lines(targets)))
    for name, value in notice.variables.items():
        print(f"  {name}={value}")
    git = environment.get("git")
    if isinstance(git, dict) and git["diff"]:
        print(git["diff"])


def _write(notice: RecordingNotice, targets: Sequence[str]) -> None:
    sys.stderr.write("".join(f"clusterscape: {line}\n" for line in notice.lines(targets)))
