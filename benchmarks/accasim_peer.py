"""Runs AccaSim, FCFS + EASY, on an SWF file; for its own interpreter, which has nothing of ours. Prints processor seconds.

AccaSim 1.1.3 was written for Python < 3.10: the names it expects in ``collections`` are put there first.
"""

import collections
import collections.abc
import json
import logging
import sys
import time
from pathlib import Path

for name in ("Mapping", "MutableMapping", "Iterable", "Sequence", "Callable"):
    setattr(collections, name, getattr(collections.abc, name))


def main() -> None:
    """Arguments: a folder to write to, the SWF file, the number of processors."""
    from accasim.base.allocator_class import FirstFit  # type: ignore[import-not-found]
    from accasim.base.scheduler_class import EASYBackfilling  # type: ignore[import-not-found]
    from accasim.base.simulator_class import Simulator  # type: ignore[import-not-found]

    folder, processors = Path(sys.argv[1]), int(sys.argv[3])
    system = {
        "groups": {"all": {"core": 1}},
        "resources": {"all": processors},
        "equivalence": {"processor": {"core": 1}},
    }
    (folder / "system.json").write_text(json.dumps(system))
    logging.disable(logging.CRITICAL)
    outputs = dict.fromkeys(("scheduling_output", "statistics_output", "show_statistics"), False)
    simulator = Simulator(
        sys.argv[2],
        str(folder / "system.json"),
        EASYBackfilling(FirstFit()),
        RESULTS_FOLDER_PATH=str(folder),
        **outputs,
    )
    start = time.process_time()
    simulator.start_simulation()
    print(time.process_time() - start)


if __name__ == "__main__":
    main()
