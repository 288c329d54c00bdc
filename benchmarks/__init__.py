"""Benchmarks: each compares with a peer in one run and states a budget. They start the same real servers as the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
