"""Each a comparison with a peer in one run, and a stated budget. They start the same real servers as the tests do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
