"""Slurm through its commands: squeue, scontrol, sinfo and sacct with ``--json``, and sprio, each with a time limit."""

import asyncio
import contextlib
import os
import re

from clusterscape.collect.slurm.faults import explain, read_answer
from clusterscape.collect.slurm.priorities import COMMAND, NOT_MULTIFACTOR, parse_priorities
from clusterscape.collect.slurm.source import Document
from clusterscape.errors import SourceError
from clusterscape.settings import SlurmSettings

HISTORY_PATIENCE = 6
"""Accounting may take so many times longer than the queue."""

# A user's own defaults for the commands would filter or reformat what they print.
_DEFAULTS = re.compile(r"(SQUEUE|SINFO|SACCT|SCONTROL|SPRIO)_|SLURM_CLUSTERS$")
_NO_JSON = re.compile(r"unrecognized option|invalid option", re.IGNORECASE)


class SlurmCommands:
    """A SlurmSource. What the installed commands can do is found out once and remembered."""

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
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
        """``sacct --json`` of all users, without steps."""
        return await self._ask(
            "jobs",
            "sacct",
            "--json",
            "--allusers",
            "--allocations",
            f"--starttime=uts{start_s}",
            f"--endtime=uts{end_s}",
        )

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

    async def _run(self, timeout_s: float, *command: str) -> tuple[bytes, str]:
        """Standard output and error of a command that succeeded; SourceError otherwise."""
        asked = " ".join(command)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(),
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
                output, errors = await process.communicate()
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

    def _environment(self) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not _DEFAULTS.match(key)}
        # Without this, lists of array tasks are cut after 64 characters.
        environment["SLURM_BITSTR_LEN"] = "0"
        if self._settings.conf is not None:
            environment["SLURM_CONF"] = str(self._settings.conf)
        return environment


def _parse_partition_line(line: str) -> dict[str, object]:
    """A line of ``scontrol --oneliner show partitions`` in the shape of slurmrestd's v0.0.38."""
    fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
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
