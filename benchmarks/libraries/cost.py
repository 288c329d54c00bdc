"""Cost of each library before its first use: seconds and megabytes of its import, packages and bytes on the disk.

``python -m benchmarks.libraries.cost SITE_PACKAGES MODULE OUR_MODULE`` compares one library, installed alone in an environment of
its own, with our module of the same purpose; ``--after`` names what the process has loaded before in any case.
"""

import argparse
import os
import subprocess
import sys
from importlib.metadata import distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROBE = """
import resource, sys, time
import {after}
before = len(sys.modules)
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
import {module}
took = time.perf_counter() - begun
print(took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1000, len(sys.modules) - before)
"""
ROUNDS = 7
NOT_COUNTED = {"pip", "setuptools"}


def probe(module: str, after: str, paths: list[str]) -> tuple[float, float, int]:
    """Seconds, megabytes and modules of an import in a new interpreter; the quickest of some."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    rounds = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROBE.format(module=module, after=after)],
            env=environ, check=True, capture_output=True, text=True,
        )  # fmt: skip
        took, grown, modules = done.stdout.split()
        rounds.append((float(took), float(grown), int(modules)))
    return min(rounds)


def folder_mb(folder: Path) -> float:
    """Without compiled caches, pip and setuptools."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sum(path.stat().st_size for path in files if path.relative_to(folder).parts[0] not in NOT_COUNTED) / 1e6


def needed_by(name: str) -> set[str]:
    """A package and everything that comes with it, without extras of ours."""
    names: set[str] = set()
    todo: list[tuple[str, set[str]]] = [(name, {""})]
    while todo:
        package, extras = todo.pop()
        names.add(canonicalize_name(package))
        for line in requires(package) or ():
            needed = Requirement(line)
            is_wanted = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras)
            if is_wanted and canonicalize_name(needed.name) not in names:
                todo.append((needed.name, {"", *needed.extras}))
    return names


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site_packages", type=Path)
    parser.add_argument("module")
    parser.add_argument("our_module")
    parser.add_argument("--after", default="clusterscape", help="modules that are loaded before, in any case")
    options = parser.parse_args()
    installed = {
        canonicalize_name(distribution.name) for distribution in distributions(path=[str(options.site_packages)])
    }
    new = sorted(installed - needed_by("clusterscape") - NOT_COUNTED)
    print(f"{len(installed - NOT_COUNTED)} packages, {folder_mb(options.site_packages):.0f} MB;", f"new to us: {new}")
    paths = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), str(options.site_packages)]
    for name, module in (("library", options.module), ("ours", options.our_module)):
        took, grown, modules = probe(module, options.after, paths)
        print(f"{name:8} {module}: {took * 1000:.0f} ms, {grown:.0f} MB, {modules} modules", flush=True)


if __name__ == "__main__":
    main()
