"""Slurm through its commands: squeue, scontrol, sinfo and sacct with ``--json``, and sprio, each with a time limit."""

import asyncio
import contextlib
import os
import re

from clusterscape.collect.bounded_answers import AnswerTooLargeError
from clusterscape.collect.slurm import exit_codes
from clusterscape.collect.slurm.exit_codes import add_exit_codes, lacks_exit_codes, parse_exit_codes
from clusterscape.collect.slurm.faults import explain, read_answer, too_large
from clusterscape.collect.slurm.parse_rules import parse_fields, parse_preemption, reservation_lines
from clusterscape.collect.slurm.priorities import COMMAND, NOT_MULTIFACTOR, parse_priorities
from clusterscape.collect.slurm.source import Document
from clusterscape.collect.slurm.values import as_list
from clusterscape.errors import SourceError
from clusterscape.model import PreemptionRules
from clusterscape.settings import SlurmSettings
from clusterscape.settings.limits import SourceLimits

HISTORY_PATIENCE = 6
"""Accounting may take so many times longer than the queue."""

MOST_ERROR_BYTES = 2**20

# A user's own defaults for the commands would filter or reformat what they print.
_DEFAULTS = re.compile(r"(SQUEUE|SINFO|SACCT|SACCTMGR|SCONTROL|SPRIO)_|SLURM_(CLUSTERS|TIME_FORMAT)$")
QOS_COMMAND = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,Preempt,PreemptMode")
_NO_JSON = re.compile(r"unrecognized option|invalid option", re.IGNORECASE)


class SlurmCommands:
    """A SlurmSource. What the installed commands can do is found out once and remembered."""

    def __init__(self, settings: SlurmSettings, limits: SourceLimits | None = None) -> None:
        self._settings = settings
        self._most_bytes = (limits or SourceLimits()).answer_bytes
        self._scontrol_has_json: bool | None = None
        self._has_priority_parts = True

    def describe(self) -> str:
        """What is asked, for people."""
        return "Slurm's commands"

    async def fetch_jobs(self) -> Document:
        """``squeue --json``; from 23.02 on it shows ended jobs only when asked."""
        return await self._ask("jobs", "squeue", "--json", "--all", "--states=all")

    async def fetch_nodes(self) -> Document:
        """``scontrol show nodes --json``; before 23.02, which lacks it, ``sinfo --json`` lists nodes."""
        if await self._is_json_scontrol():
            return await self._ask("nodes", "scontrol", "--json", "--all", "show", "nodes")
        return await self._ask("nodes", "sinfo", "--json", "--all")

    async def fetch_partitions(self) -> Document:
        """``scontrol show partitions``, as JSON where it can."""
        if await self._is_json_scontrol():
            return await self._ask("partitions", "scontrol", "--json", "--all", "show", "partitions")
        output, _ = await self._run(self._settings.timeout_s, "scontrol", "--oneliner", "--all", "show", "partitions")
        return {"partitions": [_parse_partition_line(line) for line in output.decode("utf-8", "replace").splitlines()]}

    async def fetch_history(self, start_s: int, end_s: int) -> Document:
        """``sacct --json`` of all users, every execution of a job, without steps."""
        # Duplicates: one record for each execution; else only the newest of a requeued job.
        which = ("--allusers", "--allocations", "--duplicates", f"--starttime=uts{start_s}", f"--endtime=uts{end_s}")
        document = await self._ask("jobs", "sacct", "--json", *which)
        if lacks_exit_codes(document):
            table = ("--noheader", "--parsable2", f"--format={exit_codes.FORMAT}")
            patience_s = self._settings.timeout_s * HISTORY_PATIENCE
            with contextlib.suppress(SourceError):  # the jobs are worth more than their exit codes
                output, _ = await self._run(patience_s, "sacct", *which, *table, unix_times=True)
                codes = parse_exit_codes(output.decode("utf-8", "replace"))
                add_exit_codes(as_list(document.get("jobs")), codes)
        return document

    async def fetch_priorities(self) -> dict[str, dict[str, int]] | None:
        """``sprio``; asked no more where the cluster does not use priority/multifactor, or the command is not there."""
        if not self._has_priority_parts:
            return None
        try:
            output, _ = await self._run(self._settings.timeout_s, *COMMAND)
        except SourceError as error:
            if NOT_MULTIFACTOR in error.message or "is not installed" in error.message:
                self._has_priority_parts = False
                return None
            raise
        return parse_priorities(output.decode("utf-8", "replace"))

    async def fetch_reservations(self) -> Document:
        """``scontrol show reservation``; its lines are the same in every version, and its times are Unix seconds on demand."""
        output, _ = await self._run(self._settings.timeout_s, "scontrol", "--oneliner", "--all", "show", "reservation")
        return reservation_lines(output.decode("utf-8", "replace"))

    async def fetch_preemption(self) -> PreemptionRules | None:
        """From the configuration, the partitions and, where there is accounting, the qualities of service."""
        config, partitions = [
            (await self._run(self._settings.timeout_s, "scontrol", *words))[0].decode("utf-8", "replace")
            for words in (("show", "config"), ("--oneliner", "--all", "show", "partitions"))
        ]
        try:
            qos, _ = await self._run(self._settings.timeout_s, *QOS_COMMAND)
        except SourceError:  # no accounting, or no right to ask it: preemption by QOS needs both
            qos = b""
        return parse_preemption(config, partitions, qos.decode("utf-8", "replace"))

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def _is_json_scontrol(self) -> bool:
        if self._scontrol_has_json is None:
            try:
                await self._run(self._settings.timeout_s, "scontrol", "--json", "--version")
                self._scontrol_has_json = True
            except SourceError as error:
                if not _NO_JSON.search(error.message):
                    raise
                self._scontrol_has_json = False
        return self._scontrol_has_json

    async def _ask(self, key: str, *command: str) -> Document:
        patience = HISTORY_PATIENCE if command[0] == "sacct" else 1
        output, aside = await self._run(self._settings.timeout_s * patience, *command)
        return read_answer(output, asked=" ".join(command), key=key, aside=aside)

    async def _run(self, timeout_s: float, *command: str, unix_times: bool = False) -> tuple[bytes, str]:
        """Standard output and error of a command that succeeded; SourceError otherwise.

        ``unix_times``: in tables. JSON has them anyway, and sacct 22.05 cannot read back times that it writes like this.
        """
        asked = " ".join(command)
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
            raise SourceError(f"{asked} cannot be started: {error.strerror}", hint="Check its permissions.") from None
        try:
            async with asyncio.timeout(timeout_s):
                output, errors = await self._read_output(process)
        except AnswerTooLargeError:
            raise too_large(asked, self._most_bytes) from None
        except TimeoutError:
            raise SourceError(
                f"{asked} did not answer within {timeout_s:g} s",
                hint="slurmctld may be overloaded or unreachable: check `sdiag` and `scontrol ping`, or raise "
                "collect.slurm.timeout_s.",
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        aside = errors.decode("utf-8", "replace")
        if process.returncode:
            raise explain(asked, aside or output[-2000:].decode("utf-8", "replace"))
        return output, aside

    async def _read_output(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        """Standard output and error until both end. Raises AnswerTooLargeError."""
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = await asyncio.gather(
            _read_pipe(process.stdout, self._most_bytes), _read_pipe(process.stderr, MOST_ERROR_BYTES)
        )
        await process.wait()
        return output, errors

    def _environment(self, *, unix_times: bool) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not _DEFAULTS.match(key)}
        # Without this, lists of array tasks are cut after 64 characters.
        environment["SLURM_BITSTR_LEN"] = "0"
        if unix_times:
            environment["SLURM_TIME_FORMAT"] = "%s"
        if self._settings.conf is not None:
            environment["SLURM_CONF"] = str(self._settings.conf)
        return environment


async def _read_pipe(pipe: asyncio.StreamReader, most_bytes: int) -> bytes:
    text = bytearray()
    while chunk := await pipe.read(2**16):
        text += chunk
        if len(text) > most_bytes:
            raise AnswerTooLargeError
    return bytes(text)


def _parse_partition_line(line: str) -> dict[str, object]:
    """A line of ``scontrol --oneliner show partitions`` in the shape of slurmrestd's v0.0.38."""
    fields = parse_fields(line)
    return {
        "name": fields.get("PartitionName"),
        "nodes": fields.get("Nodes"),
        "state": fields.get("State"),
        "flags": ["DEFAULT"] if fields.get("Default") == "YES" else [],
        "max_time_limit": _parse_minutes(fields.get("MaxTime", "")),
    }


def _parse_minutes(text: str) -> int | None:
    """Minutes of ``7-00:00:00``; None of UNLIMITED."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text, re.ASCII)
    if match is None:
        return None
    days, hours, minutes = int(match[1] or 0), int(match[2]), int(match[3])
    return (days * 24 + hours) * 60 + minutes
