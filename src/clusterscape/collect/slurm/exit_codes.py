"""Exit codes of ended jobs where the accounting's JSON does not have them: Slurm 22.05 prints 0 for every job that failed.

``sacct`` prints them in its table: ``ExitCode`` 3:0 is a code and a signal, ``DerivedExitCode`` the worst of the job's steps.
"""

from collections.abc import Iterable, Mapping

from clusterscape.collect.slurm.values import as_list, as_object, read_int

LAST_WITHOUT = 22
"""The last major version whose JSON lacks exit codes."""

FORMAT = "JobIDRaw,Start,ExitCode,DerivedExitCode"
Key = tuple[int, int]
"""Job number and start in Unix seconds: one execution."""


def lacks_exit_codes(document: Mapping[str, object]) -> bool:
    """Whether the answer holds ended jobs, and its version does not print their exit codes."""
    meta = as_object(document.get("meta"))
    slurm = as_object(meta.get("Slurm", meta.get("slurm")))
    major = read_int(as_object(slurm.get("version")).get("major"))
    return major is not None and major <= LAST_WITHOUT and bool(as_list(document.get("jobs")))


def parse_exit_codes(output: str) -> dict[Key, tuple[object, object]]:
    """Both codes of each execution, from lines such as ``4711|1700000000|3:0|0:0``; others are left out."""
    found: dict[Key, tuple[object, object]] = {}
    for line in output.splitlines():
        parts = line.split("|")
        number, start = (read_int(part) for part in parts[:2]) if len(parts) == 4 else (None, None)
        if number and start:
            found[number, start] = (_parse_code(parts[2]), _parse_code(parts[3]))
    return found


def add_exit_codes(jobs: Iterable[object], codes: Mapping[Key, tuple[object, object]]) -> None:
    """Put the codes into the entries of the JSON, in the shape that later versions have."""
    for job in jobs:
        entry = as_object(job)
        number, start = read_int(entry.get("job_id")), read_int(as_object(entry.get("time")).get("start"))
        if number is None or start is None or (number, start) not in codes:
            continue
        for name, code in zip(("exit_code", "derived_exit_code"), codes[number, start], strict=True):
            if code is not None:
                entry[name] = code


def _parse_code(text: str) -> dict[str, object] | None:
    code, _, signal = text.partition(":")
    number = read_int(code)
    if number is None:
        return None
    return {"return_code": number, "signal": {"signal_id": read_int(signal) or 0}}
