"""Bearer tokens: fixed, from a file that is renewed (service accounts), or from the exec program of a kubeconfig."""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import orjson

from clusterscape.collect.kubernetes.values import Json, as_list, as_object, iter_objects, read_text, read_time
from clusterscape.errors import SourceError

REREAD_S = 60.0
"""The kubelet renews a pod's token long before it expires."""

PROGRAM_TIMEOUT_S = 20.0
EARLY_MS = 60_000


class Token(Protocol):
    """A source of bearer tokens."""

    async def get(self) -> str | None:
        """The current token; None sends none. Raises SourceError."""
        ...

    def reject(self) -> None:
        """Discard the token, because the server rejected it: the next ``get`` reads it again."""
        ...


@dataclass(frozen=True, slots=True)
class FixedToken:
    """A token that never changes."""

    text: str | None = field(repr=False)

    async def get(self) -> str | None:
        """The token."""
        return self.text

    def reject(self) -> None:
        """There is no other."""


class FileToken:
    """Read again every minute."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text: str | None = None
        self._read_at = 0.0

    async def get(self) -> str | None:
        """The file's text."""
        if self._text is None or time.monotonic() - self._read_at > REREAD_S:
            try:
                self._text = self._path.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise SourceError(
                    f"cannot read the token in {self._path}: {error}", hint="Let the user of ClusterScape read it."
                ) from None
            self._read_at = time.monotonic()
        return self._text

    def reject(self) -> None:
        """Read it again."""
        self._text = None


class CommandToken:
    """The token of a kubeconfig's ``exec`` program (client.authentication.k8s.io), if it is not interactive."""

    def __init__(self, command: list[str], environment: Mapping[str, str], hint: str) -> None:
        self._command = command
        self._environment = environment
        self._hint = hint
        self._text: str | None = None
        self._expires_at: int | None = None

    @classmethod
    def from_kubeconfig(cls, entry: Json, path: Path) -> "CommandToken":
        """Raises SourceError if the program is interactive or needs cluster data."""
        command = read_text(entry.get("command"))
        if command is None or entry.get("interactiveMode") == "Always" or entry.get("provideClusterInfo") is True:
            raise SourceError(
                f"{path}: the login program of this user is interactive or needs the cluster's data",
                hint="Create a service account with deploy/kubernetes/clusterscape.yaml and use its token.",
            )
        arguments = [argument for argument in as_list(entry.get("args")) if isinstance(argument, str)]
        environment = {
            name: value
            for item in iter_objects(entry.get("env"))
            if (name := read_text(item.get("name"))) and (value := read_text(item.get("value"))) is not None
        }
        version = read_text(entry.get("apiVersion")) or "client.authentication.k8s.io/v1"
        environment["KUBERNETES_EXEC_INFO"] = orjson.dumps(
            {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        ).decode()
        hint = read_text(entry.get("installHint")) or f"Run `{command}` manually as the user that runs ClusterScape."
        # A path is relative to the kubeconfig, a bare name is looked for in PATH, as kubectl does.
        program = str(path.parent / command) if "/" in command else command
        return cls([program, *arguments], environment, hint)

    async def get(self) -> str | None:
        """The token, until a minute before it expires."""
        is_over = self._expires_at is not None and time.time() * 1000 > self._expires_at - EARLY_MS
        if self._text is None or is_over:
            await self._run()
        return self._text

    def reject(self) -> None:
        """Run the program again."""
        self._text = None

    async def _run(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, **self._environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise SourceError(f"cannot run {self._command[0]}: {error.strerror}", hint=self._hint) from None
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(), PROGRAM_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise SourceError(
                f"{self._command[0]} gave no token within {PROGRAM_TIMEOUT_S:g} s", hint=self._hint
            ) from None
        try:
            status = as_object(as_object(orjson.loads(stdout)).get("status"))
        except orjson.JSONDecodeError:
            status = {}
        token = read_text(status.get("token"))
        if process.returncode or token is None:
            message = stderr.decode("utf-8", "replace").strip()[-200:] or "it printed no token"
            raise SourceError(f"{self._command[0]}: {message}", hint=self._hint)
        self._text, self._expires_at = token, read_time(status.get("expirationTimestamp"))
