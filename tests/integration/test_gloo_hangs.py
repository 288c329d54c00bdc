"""Real ranks over gloo that hang, looked at by the tracker's own code."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
JUDGE = """\
import sys
from pathlib import Path
import torch.distributed
from hangs.gloo import hang
from clusterscape.analyze.hang.verdict import judge_hang
from clusterscape.collect.hangs.reading import read_looks
hung = hang(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
verdict = judge_hang(read_looks(hung.looks))
print(verdict.kind.value, *verdict.ranks, hung.rank, verdict.place)
"""


@pytest.mark.parametrize(
    ("kind", "expected", "place"),
    [
        ("absent", "absent", "in compute_statistics"),
        ("deadlock", "deadlock", "in wait_for_writer"),
        ("mismatch", "mismatch", "in _train"),
        ("order", "mismatch", "in _train"),
        ("slow", "slow", ""),
    ],
)
def test_rank_and_line_are_named_when_real_ranks_hang(tmp_path: Path, kind: str, expected: str, place: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, kind, "1", str(tmp_path / "looks")],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[0] == expected
    assert words[1] == words[2], done.stdout
    assert place in done.stdout
