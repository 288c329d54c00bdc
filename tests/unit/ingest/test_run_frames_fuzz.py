"""The intake of runs with mutated events and samples, in a separate process with limited memory."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

EXAMPLES = int(os.environ.get("CLUSTERSCAPE_FUZZ_EXAMPLES", "1000"))
MOST_BYTES = 8 * 2**30
"""Of addresses, most of which threads and libraries only reserve."""
MOST_GROWN_MIB = 300


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def test_nothing_but_our_errors_and_nothing_of_others_changes_when_pieces_are_mutated(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fuzz.run_frames", str(EXAMPLES), str(tmp_path)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[2])])}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, preexec_fn=limit_memory)
    assert done.returncode == 0, done.stderr[-5000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["taken"] > EXAMPLES // 20, "most were refused: what is behind the schema was not tried"
    assert report["refused"] > EXAMPLES // 20
    assert report["grown_mib"] < MOST_GROWN_MIB
