"""The exporters to scrape: from the settings (with ranges), from a file that may change, from DNS; and how shards split them.

``node=NAME`` in an entry sets the node. Without it the short host name is only a guess, which ingest compares with the exporter's
own host name and with the scheduler's nodes.

Shards use rendezvous hashing: a target belongs to the shard with the highest hash of (shard, target), so shards need not
communicate, and a new shard takes over only its share of the targets.
"""

import asyncio
import hashlib
import ipaddress
import itertools
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from clusterscape import executors
from clusterscape.errors import ConfigError
from clusterscape.model import NodeId
from clusterscape.settings import DcgmSettings

DEFAULT_PORT = 9400
DEFAULT_PATH = "/metrics"
MAX_TARGETS = 100_000

_RANGE = re.compile(r"\[([0-9,-]+)\]")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_FORMS = "host, host:port, gpu-[001-128]:9400, or a URL such as http://gpu-001:9400/metrics, with node=NAME after it"


@dataclass(frozen=True, slots=True)
class Target:
    """One exporter. ``origin`` is the setting or file that lists it, for hints. ``is_named``: the entry sets the node."""

    url: str
    node: NodeId | None
    origin: str
    is_named: bool = False

    @property
    def shown_url(self) -> str:
        """The URL without the password."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    @property
    def host(self) -> str:
        """The host name or IP address."""
        return urlsplit(self.url).hostname or self.url

    @property
    def port(self) -> int:
        """The TCP port."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def address(self) -> str:
        """Host and port, like Prometheus' ``instance`` label; with the path if it is not the default."""
        path = urlsplit(self.url).path
        return f"{_in_url(self.host)}:{self.port}{'' if path == DEFAULT_PATH else path}"


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """A list of targets that could not be read, completely or in part."""

    origin: str
    message: str
    hint: str


def parse_target(text: str, origin: str) -> list[Target]:
    """Parse one entry into its targets. Raises ConfigError if it is invalid."""
    spec, *options = text.split() or [""]
    node: NodeId | None = None
    for option in options:
        key, _, value = option.partition("=")
        if key != "node" or not value:
            raise ConfigError(f"unknown option `{option}` of target `{spec}` in {origin}", hint=f"Use {_FORMS}.")
        node = NodeId(value)
    if "://" in spec:
        return [_parse_url(spec, node, origin)]
    targets = [_parse_host(host, node, origin) for host in expand_ranges(spec, origin)]
    if node is not None and len(targets) > 1:
        raise ConfigError(f"`{text}` in {origin} sets one node for {len(targets)} targets", hint="Remove node=.")
    return targets


def expand_ranges(text: str, origin: str) -> Iterator[str]:
    """Expand ``gpu-[001-003,7]`` to gpu-001, gpu-002, gpu-003, gpu-7; leading zeros of the lower bound set the width."""
    fixed_and_ranges = _RANGE.split(text)
    fixed, ranges = fixed_and_ranges[::2], fixed_and_ranges[1::2]
    choices = [_expand_range(numbers, text, origin) for numbers in ranges]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_TARGETS:
        raise ConfigError(
            f"`{text}` in {origin} expands to {total} targets", hint=f"At most {MAX_TARGETS} are allowed."
        )
    for combination in itertools.product(*choices):
        yield "".join(itertools.chain.from_iterable(zip(fixed, (*combination, ""), strict=True)))


def _expand_range(numbers: str, text: str, origin: str) -> list[str]:
    expanded: list[str] = []
    for part in numbers.split(","):
        bounds = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if bounds is None or int(bounds[2] or bounds[1]) < int(bounds[1]):
            raise ConfigError(
                f"invalid range `[{numbers}]` of `{text}` in {origin}", hint="Write it like [001-128,130]."
            )
        low, high = int(bounds[1]), int(bounds[2] or bounds[1])
        if high - low >= MAX_TARGETS:
            raise ConfigError(
                f"`{text}` in {origin} expands to {high - low + 1} targets", hint=f"At most {MAX_TARGETS} are allowed."
            )
        expanded.extend(str(number).zfill(len(bounds[1])) for number in range(low, high + 1))
    return expanded


def _parse_url(text: str, node: NodeId | None, origin: str) -> Target:
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError(f"`{text}` in {origin} is not an http(s) URL", hint=f"Use {_FORMS}.")
    if node is None and parts.fragment:
        node = NodeId(parts.fragment)
    url = urlunsplit(parts._replace(path=parts.path or DEFAULT_PATH, fragment=""))
    return Target(url, node, origin, is_named=node is not None)


def _parse_host(text: str, node: NodeId | None, origin: str) -> Target:
    bracketed = re.fullmatch(r"\[([0-9a-fA-F:.]+)\](?::(\d{1,5}))?", text)
    plain = re.fullmatch(r"([^:\[\]]+)(?::(\d{1,5}))?", text)
    match = bracketed or plain
    host, port = (match[1], int(match[2] or DEFAULT_PORT)) if match else ("", 0)
    is_address = _is_address(host)
    if not 0 < port < 65_536 or not (is_address or (plain and _HOST.fullmatch(host))):
        raise ConfigError(f"`{text}` in {origin} is not a target", hint=f"Use {_FORMS}.")
    is_named = node is not None
    if node is None and not is_address:
        node = short_name(host)
    return Target(f"http://{_in_url(host)}:{port}{DEFAULT_PATH}", node, origin, is_named=is_named)


def short_name(host: str) -> NodeId:
    """The host name without its domain, as schedulers use it. An IP address is returned unchanged."""
    return NodeId(host if _is_address(host) else host.partition(".")[0])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class TargetList:
    """All targets of the settings. If a list cannot be read, the last version that could be read stays in use."""

    def __init__(self, settings: DcgmSettings) -> None:
        origin = "collect.dcgm.targets"
        self._static = [target for text in settings.targets for target in parse_target(text, origin)]
        self._path = settings.targets_file
        self._dns = None if settings.dns is None else _split_dns_name(settings.dns)
        self._from_file: list[Target] = []
        self._file_problems: list[TargetProblem] = []
        self._file_version: tuple[int, int] | None = None
        self._from_dns: list[Target] = []

    async def read(self) -> tuple[list[Target], list[TargetProblem]]:
        """Return the current targets, without duplicate URLs, and the problems of their lists."""
        problems: list[TargetProblem] = []
        if self._path is not None:
            problems += await executors.COLLECT.run(self._read_file, self._path)
        if self._dns is not None:
            problems += await self._resolve(*self._dns)
        by_url: dict[str, Target] = {}
        for target in (*self._static, *self._from_file, *self._from_dns):
            by_url.setdefault(target.url, target)
        return list(by_url.values()), problems

    def _read_file(self, path: Path) -> list[TargetProblem]:
        try:
            status = path.stat()
            version = (status.st_mtime_ns, status.st_size)
            if version == self._file_version:
                return self._file_problems
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            return [TargetProblem(str(path), f"cannot read {path}: {reason}", "Fix collect.dcgm.targets_file.")]
        targets: list[Target] = []
        problems: list[TargetProblem] = []
        for number, line in enumerate(text.splitlines(), 1):
            content = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()  # http://…/#node is not a comment
            if not content:
                continue
            try:
                targets += parse_target(content, str(path))
            except ConfigError as error:
                problems.append(TargetProblem(str(path), f"line {number}: {error.message}", error.hint or ""))
        self._from_file, self._file_problems, self._file_version = targets, problems, version
        return problems

    async def _resolve(self, name: str, port: int) -> list[TargetProblem]:
        origin = "collect.dcgm.dns"
        try:
            results = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except OSError as error:
            reason = error.strerror or str(error)
            return [TargetProblem(origin, f"cannot resolve {name}: {reason}", f"Check {origin} and this host's DNS.")]
        addresses = sorted({str(address[0]) for *_, address in results})
        self._from_dns = [
            Target(f"http://{_in_url(address)}:{port}{DEFAULT_PATH}", None, origin) for address in addresses
        ]
        return []


def _split_dns_name(text: str) -> tuple[str, int]:
    name, _, port = text.partition(":")
    if not _HOST.fullmatch(name) or not (port or str(DEFAULT_PORT)).isdigit():
        raise ConfigError(f"collect.dcgm.dns = `{text}` is not a name with a port", hint="Write it like name:9400.")
    return name, int(port or DEFAULT_PORT)


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard ``number`` of ``count``, counted from 1. The first also reads unsplit sources, such as the scheduler."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def is_first(self) -> bool:
        """Whether it reads the sources that only one shard may read."""
        return self.number == 1

    def owns_name(self, name: str) -> bool:
        """Whether a node, or a target without a node, belongs to this shard."""
        if self.count == 1:
            return True
        return max(range(1, self.count + 1), key=lambda number: _weight(name, number)) == self.number

    def owns(self, target: Target) -> bool:
        """Whether this shard scrapes ``target``, by its node if it has one, else by its address."""
        return self.owns_name(target.node or f"{target.host}:{target.port}")


def parse_shard(text: str) -> Shard:
    """Parse ``2/3``. Raises ConfigError if the number is above the count."""
    number, _, count = text.partition("/")
    shard = Shard(int(number), int(count))
    if shard.number > shard.count:
        raise ConfigError(
            f"setting `collect.shard` = {text!r} is invalid: there are only {shard.count} shards",
            hint=f"Number them from 1/{shard.count} to {shard.count}/{shard.count}.",
        )
    return shard


def _weight(name: str, number: int) -> bytes:
    return hashlib.blake2b(f"{number} {name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
