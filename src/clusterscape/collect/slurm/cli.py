"""Runs Slurm's commands: squeue, scontrol, sinfo and sacct with ``--json``, and sprio for priority factors, each with a timeout.
Commands without ``--json`` (Slurm 20.11 and before) are asked for text instead.

If the JSON of sacct lacks exit codes, they come from its table: ``ExitCode`` 3:0 is a code and a signal, ``DerivedExitCode`` the
highest of the job's steps. slurmrestd has no priority factors.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterable, Mapping

from clusterscape.collect.bounded_responses import ResponseTooLargeError
from clusterscape.collect.slurm.faults import explain, parse_response, response_too_large
from clusterscape.collect.slurm.parse_rules import parse_fields, parse_preemption, parse_reservation_lines
from clusterscape.collect.slurm.source import Document
from clusterscape.collect.slurm.text_output import (
    HISTORY_FIELDS,
    parse_history_text,
    parse_jobs_text,
    parse_minutes,
    parse_nodes_text,
)
from clusterscape.collect.slurm.values import as_list, as_object, read_int
from clusterscape.errors import SourceError
from clusterscape.model import PreemptionRules
from clusterscape.settings import SlurmSettings
from clusterscape.settings.limits import SourceLimits

LAST_WITHOUT_EXIT_CODES = 22
"""The last major version whose JSON lacks exit codes."""

EXIT_CODE_FORMAT = "JobIDRaw,Start,ExitCode,DerivedExitCode"
Key = tuple[int, int]
"""Job number and start in Unix seconds: one execution."""


def lacks_exit_codes(document: Mapping[str, object]) -> bool:
    """Whether the response has ended jobs, and its version does not print their exit codes."""
    meta = as_object(document.get("meta"))
    slurm = as_object(meta.get("Slurm", meta.get("slurm")))
    major = read_int(as_object(slurm.get("version")).get("major"))
    return major is not None and major <= LAST_WITHOUT_EXIT_CODES and bool(as_list(document.get("jobs")))


def parse_exit_codes(output: str) -> dict[Key, tuple[object, object]]:
    """Parse both codes of each execution from lines such as ``4711|1700000000|3:0|0:0``; other lines are skipped."""
    codes: dict[Key, tuple[object, object]] = {}
    for line in output.splitlines():
        parts = line.split("|")
        number, start = (read_int(part) for part in parts[:2]) if len(parts) == 4 else (None, None)
        if number and start:
            codes[number, start] = (_parse_code(parts[2]), _parse_code(parts[3]))
    return codes


def add_exit_codes(jobs: Iterable[object], codes: Mapping[Key, tuple[object, object]]) -> None:
    """Add the codes to the JSON entries, in the format of later versions."""
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


PRIORITY_FIELDS: Mapping[str, str] = {
    "age": "%A",
    "fair_share": "%F",
    "size": "%J",
    "partition": "%P",
    "qos": "%Q",
    "association": "%B",
    "site": "%S",
    "tres": "%T",
    "nice": "%N",
}
"""Priority factors by name, with sprio's letter for the weighted value. ``nice`` is subtracted; ``tres`` is a list to sum."""

PRIORITY_COMMAND = ("sprio", "--noheader", "--format=" + "|".join(("%i", "%Y", *PRIORITY_FIELDS.values())))

NOT_MULTIFACTOR = "priority/multifactor"
"""Part of sprio's error message on clusters with priority/basic: only this plugin has factors."""


def parse_priorities(text: str) -> dict[str, dict[str, int]]:
    """Parse the nonzero factors by job number; for a job in several partitions those of the highest priority."""
    highest: dict[str, int] = {}
    factors: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        job, *values = (value.strip() for value in line.split("|"))
        numbers = [_read(value) for value in values]
        if not job.isdigit() or len(numbers) != len(PRIORITY_FIELDS) + 1 or numbers[0] is None:
            continue
        if numbers[0] <= highest.get(job, -1):
            continue
        highest[job] = numbers[0]
        values_by_name = dict(zip(PRIORITY_FIELDS, numbers[1:], strict=True))
        factors[job] = {name: -value if name == "nice" else value for name, value in values_by_name.items() if value}
    return factors


def _read(value: str) -> int | None:
    """Parse a number, or the sum of ``cpu=10,gres/gpu=250``; None for anything else."""
    if not value:
        return 0
    try:
        return sum(round(float(piece.rpartition("=")[2])) for piece in value.split(",") if piece)
    except (ValueError, OverflowError):
        return None


HISTORY_TIMEOUT_FACTOR = 6
"""The timeout of accounting queries, as a multiple of the others' timeout."""

MAX_ERROR_BYTES = 2**20

# Variables with the user's defaults of the commands, which would filter or reformat their output.
_DEFAULTS = re.compile(r"(SQUEUE|SINFO|SACCT|SACCTMGR|SCONTROL|SPRIO)_|SLURM_(CLUSTERS|TIME_FORMAT)$")
QOS_COMMAND = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,Preempt,PreemptMode")
_NO_JSON = re.compile(r"unrecognized option|invalid option", re.IGNORECASE)


class SlurmCommands:
    """A SlurmSource that runs commands. Which features the installed commands have is detected once."""

    def __init__(self, settings: SlurmSettings, limits: SourceLimits | None = None) -> None:
        self._settings = settings
        self._max_bytes = (limits or SourceLimits()).response_bytes
        self._with_json: dict[str, bool] = {}
        self._has_priority_factors = True

    def describe(self) -> str:
        """A name for messages."""
        return "Slurm's commands"

    async def fetch_jobs(self) -> Document:
        """``squeue --json``; since 23.02 it shows ended jobs only with ``--states=all``."""
        if await self._has_json("squeue"):
            return await self._fetch("jobs", "squeue", "--json", "--all", "--states=all")
        jobs = await self._read_text("scontrol", "--oneliner", "--details", "--all", "show", "jobs")
        owners = await self._read_text("squeue", "--noheader", "--all", "--states=all", "--format=%A %u")
        return parse_jobs_text(jobs, owners)

    async def fetch_nodes(self) -> Document:
        """``scontrol show nodes --json``; before 23.02, which lacks it, ``sinfo --json``."""
        if await self._has_json("scontrol"):
            return await self._fetch("nodes", "scontrol", "--json", "--all", "show", "nodes")
        if not await self._has_json("sinfo"):
            return parse_nodes_text(
                await self._read_text("scontrol", "--oneliner", "--details", "--all", "show", "nodes")
            )
        return await self._fetch("nodes", "sinfo", "--json", "--all")

    async def fetch_partitions(self) -> Document:
        """``scontrol show partitions``, as JSON if supported."""
        if await self._has_json("scontrol"):
            return await self._fetch("partitions", "scontrol", "--json", "--all", "show", "partitions")
        text = await self._read_text("scontrol", "--oneliner", "--all", "show", "partitions")
        return {"partitions": [_parse_partition_line(line) for line in text.splitlines()]}

    async def fetch_history(self, start_s: int, end_s: int) -> Document:
        """``sacct --json`` of all users, every execution of a job, without steps."""
        # --duplicates: one record per execution; otherwise only the newest of a requeued job.
        filters = ("--allusers", "--allocations", "--duplicates", f"--starttime=uts{start_s}", f"--endtime=uts{end_s}")
        if not await self._has_json("sacct"):
            table = ("--noheader", "--parsable2", f"--format={','.join(HISTORY_FIELDS)}")
            return parse_history_text(await self._read_text("sacct", *filters, *table))
        document = await self._fetch("jobs", "sacct", "--json", *filters)
        if lacks_exit_codes(document):
            table = ("--noheader", "--parsable2", f"--format={EXIT_CODE_FORMAT}")
            timeout_s = self._settings.timeout_s * HISTORY_TIMEOUT_FACTOR
            with contextlib.suppress(SourceError):  # jobs without exit codes are better than none
                output, _ = await self._run(timeout_s, "sacct", *filters, *table, unix_times=True)
                codes = parse_exit_codes(output.decode("utf-8", "replace"))
                add_exit_codes(as_list(document.get("jobs")), codes)
        return document

    async def fetch_priorities(self) -> dict[str, dict[str, int]] | None:
        """``sprio``; not run again if the cluster does not use priority/multifactor, or the command is not installed."""
        if not self._has_priority_factors:
            return None
        try:
            output, _ = await self._run(self._settings.timeout_s, *PRIORITY_COMMAND)
        except SourceError as error:
            if NOT_MULTIFACTOR in error.message or "is not installed" in error.message:
                self._has_priority_factors = False
                return None
            raise
        return parse_priorities(output.decode("utf-8", "replace"))

    async def fetch_reservations(self) -> Document:
        """``scontrol show reservation``; its text format is the same in every version, and times can be Unix seconds."""
        output, _ = await self._run(self._settings.timeout_s, "scontrol", "--oneliner", "--all", "show", "reservation")
        return parse_reservation_lines(output.decode("utf-8", "replace"))

    async def fetch_preemption(self) -> PreemptionRules | None:
        """Read the configuration, the partitions and, with accounting, the QOS."""
        config, partitions = [
            (await self._run(self._settings.timeout_s, "scontrol", *arguments))[0].decode("utf-8", "replace")
            for arguments in (("show", "config"), ("--oneliner", "--all", "show", "partitions"))
        ]
        try:
            qos, _ = await self._run(self._settings.timeout_s, *QOS_COMMAND)
        except SourceError:  # no accounting, or no permission: preemption by QOS needs both
            qos = b""
        return parse_preemption(config, partitions, qos.decode("utf-8", "replace"))

    async def close(self) -> None:
        """Nothing to close."""

    async def _has_json(self, command: str) -> bool:
        """Whether a command knows ``--json``; asked once, without talking to the cluster."""
        if command not in self._with_json:
            try:
                await self._run(self._settings.timeout_s, command, "--json", "--version")
                self._with_json[command] = True
            except SourceError as error:
                if not _NO_JSON.search(error.message):
                    raise
                self._with_json[command] = False
        return self._with_json[command]

    async def _read_text(self, *command: str) -> str:
        """The output of a command as text, with times in Unix seconds."""
        factor = HISTORY_TIMEOUT_FACTOR if command[0] == "sacct" else 1
        output, _ = await self._run(self._settings.timeout_s * factor, *command, unix_times=True)
        return output.decode("utf-8", "replace")

    async def _fetch(self, key: str, *command: str) -> Document:
        factor = HISTORY_TIMEOUT_FACTOR if command[0] == "sacct" else 1
        output, stderr = await self._run(self._settings.timeout_s * factor, *command)
        return parse_response(output, request=" ".join(command), key=key, stderr=stderr)

    async def _run(self, timeout_s: float, *command: str, unix_times: bool = False) -> tuple[bytes, str]:
        """Run a command and return its standard output and error. Raises SourceError if it fails.

        ``unix_times`` is for tables: JSON has Unix times anyway, and with this setting sacct 22.05 cannot parse its own times.
        """
        command_line = " ".join(command)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(unix_times=unix_times or command[0] == "scontrol"),
            )
        except FileNotFoundError:
            raise SourceError(
                f"{command[0]} is not installed, or not on the PATH of ClusterScape",
                hint="Install Slurm's commands (`apt-get install slurm-client`, `dnf install slurm`) or add their folder "
                'to PATH; without them use slurmrestd: mode = "rest".',
            ) from None
        except OSError as error:
            raise SourceError(f"cannot run {command_line}: {error.strerror}", hint="Check its permissions.") from None
        try:
            async with asyncio.timeout(timeout_s):
                output, errors = await self._read_output(process)
        except ResponseTooLargeError:
            raise response_too_large(command_line, self._max_bytes) from None
        except TimeoutError:
            raise SourceError(
                f"{command_line} did not finish within {timeout_s:g} s",
                hint="slurmctld may be overloaded or unreachable: check `sdiag` and `scontrol ping`, or raise "
                "collect.slurm.timeout_s.",
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        stderr = errors.decode("utf-8", "replace")
        if process.returncode:
            raise explain(command_line, stderr or output[-2000:].decode("utf-8", "replace"))
        return output, stderr

    async def _read_output(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        """Read standard output and error to their ends. Raises ResponseTooLargeError."""
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = await asyncio.gather(
            _read_pipe(process.stdout, self._max_bytes), _read_pipe(process.stderr, MAX_ERROR_BYTES)
        )
        await process.wait()
        return output, errors

    def _environment(self, *, unix_times: bool) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not _DEFAULTS.match(key)}
        # Without this, lists of array tasks are truncated to 64 characters.
        environment["SLURM_BITSTR_LEN"] = "0"
        if unix_times:
            environment["SLURM_TIME_FORMAT"] = "%s"
        if self._settings.conf is not None:
            environment["SLURM_CONF"] = str(self._settings.conf)
        return environment


async def _read_pipe(pipe: asyncio.StreamReader, max_bytes: int) -> bytes:
    text = bytearray()
    while chunk := await pipe.read(2**16):
        text += chunk
        if len(text) > max_bytes:
            raise ResponseTooLargeError
    return bytes(text)


def _parse_partition_line(line: str) -> dict[str, object]:
    """Parse a line of ``scontrol --oneliner show partitions`` into the format of slurmrestd v0.0.38."""
    fields = parse_fields(line)
    return {
        "name": fields.get("PartitionName"),
        "nodes": fields.get("Nodes"),
        "state": fields.get("State"),
        "flags": ["DEFAULT"] if fields.get("Default") == "YES" else [],
        "max_time_limit": parse_minutes(fields.get("MaxTime", "")),
    }
