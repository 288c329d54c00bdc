"""Readers of foreign formats under generated input: no crash, no hang, only our own errors, bounded memory."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.seeds import SEEDS, WORDS
from fuzz.structured import MOST_MEMORY_BYTES, READERS
from servers.reliability import note

RUNS = {"exposition": 2_000, "slurm": 1_000, "swf": 60, "kineto": 200}
SOAK_S = os.environ.get("FUZZ_SECONDS")
"""How long each reader is fuzzed in a soak; without it so many inputs are tried, always the same."""


@pytest.mark.parametrize("reader", SEEDS)
def test_reader_refuses_or_reads_when_input_is_made_up(reader: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "seed").write_bytes(SEEDS[reader])
    words = tmp_path / "words"
    words.write_text("".join(f'"{_escape(word)}"\n' for word in WORDS[reader]))
    how_long = [f"-max_total_time={SOAK_S}"] if SOAK_S else [f"-runs={RUNS[reader]}", "-seed=1"]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.readers", reader, *how_long, "-max_len=8192", "-timeout=60", f"-dict={words}",
         f"-artifact_prefix={tmp_path}/", str(corpus)],
        env={**os.environ, "PYTHONPATH": _python_path()},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    tried = re.findall(r"^Done (\d+) runs in", done.stderr, re.MULTILINE)
    assert tried, done.stderr[-2_000:]
    note(
        "fuzz",
        what=f"Atheris on the reader of {reader}",
        promised="no crash, no hang of a minute, only our own errors",
        measured=f"{int(tried[-1]):,} inputs, none found",
    )


FILES = int(os.environ.get("FUZZ_FILES", "200"))
"""Files of each reader, always the same; 10,000 in a soak."""


@pytest.mark.parametrize("reader", READERS)
def test_reader_refuses_or_reads_when_one_field_of_a_valid_file_is_extreme(reader: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.structured", reader, str(FILES)],
        env={**os.environ, "PYTHONPATH": _python_path(), "FUZZ_FINDINGS": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["read"] + counts["refused"] == FILES
    assert counts["read"] > FILES // 5, "most files must get past the parser"
    note(
        "fuzz",
        what=f"extreme fields in valid files: {reader}",
        promised=f"no crash, only our own errors, at most {MOST_MEMORY_BYTES // 2**20:,} MiB",
        measured=f"{FILES:,} files, {counts['read']:,} read, {counts['refused']:,} refused, peak {counts['peak_mib']:,} MiB",
    )


def _escape(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"')


def _python_path() -> str:
    """The folder of the tests, before what the caller set."""
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
