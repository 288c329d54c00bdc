"""Fuzzes one reader with Atheris: ``python -m fuzz.readers exposition|slurm|swf|kineto [libFuzzer options]``.

A reader may refuse with one of our errors, in time. Anything else that it raises, a crash or a hang ends with a status other
than 0 and leaves the input behind (``-artifact_prefix``).
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["clusterscape.collect"]):
    from clusterscape.collect.exposition import ExpositionParser
    from clusterscape.collect.job_traces import read_trace
    from clusterscape.collect.slurm.faults import parse_response
    from clusterscape.collect.slurm.parse_history import parse_history
    from clusterscape.collect.slurm.parse_jobs import parse_jobs
    from clusterscape.collect.slurm.parse_nodes import SlurmInventory, parse_nodes, parse_partitions
    from clusterscape.collect.traces import kineto, read_traces

from fuzz.json_mutator import mutate_json
from fuzz.seeds import WORDS

from clusterscape.errors import ClusterScapeError
from clusterscape.model import UnixMs

NOW = UnixMs(1_700_000_000_000)


def fuzz_exposition(data: bytes, folder: Path) -> None:
    """Twice by one parser: the second answer takes the quick way for a known shape."""
    parser = ExpositionParser("fuzz")
    parser.parse(data, fetched_at=NOW)
    parser.parse(data, fetched_at=UnixMs(NOW + 15_000))


def fuzz_slurm(data: bytes, folder: Path) -> None:
    """Nodes, then the queue and the accounting on them."""
    inventory: SlurmInventory = parse_nodes(parse_response(data, request="fuzz", key="nodes"))
    parse_partitions({"partitions": []}, inventory)
    jobs = parse_response(data, request="fuzz", key="jobs")
    parse_jobs(jobs, inventory, NOW)
    parse_history(jobs, inventory, NOW)


def fuzz_swf(data: bytes, folder: Path) -> None:
    """As a file that says its format."""
    path = folder / "trace.swf"
    path.write_bytes(data)
    read_trace(path, "swf")


def fuzz_kineto(data: bytes, folder: Path) -> None:
    """As the only rank, in blocks so small that an input has several."""
    kineto.BLOCK_BYTES = 256
    path = folder / "rank1.json"
    path.write_bytes(data)
    read_traces([path], workers=1)


READERS: dict[str, Callable[[bytes, Path], None]] = {
    "exposition": fuzz_exposition,
    "slurm": fuzz_slurm,
    "swf": fuzz_swf,
    "kineto": fuzz_kineto,
}

JSON_READERS = frozenset({"slurm", "kineto"})


def main() -> None:
    """Run until libFuzzer's options say so."""
    name = sys.argv.pop(1)
    reader = READERS[name]
    with tempfile.TemporaryDirectory(prefix="clusterscape-fuzz-") as place:
        folder = Path(place)

        def try_one(data: bytes) -> None:
            with contextlib.suppress(ClusterScapeError):  # refused in words
                reader(data, folder)

        def mutate(data: bytes, max_size: int, seed: int) -> bytes:
            return mutate_json(data, max_size, seed, WORDS[name], lambda plain: atheris.Mutate(plain, max_size))

        atheris.Setup(sys.argv, try_one, custom_mutator=mutate if name in JSON_READERS else None)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
