"""Listeners, one file each. A new listener needs a file, an entry here, a test and a section in the guide.

``contract``: the interface of listeners.
``host_sampler``: one reader of the driver for all runs of a user on a host.
``nvml_reading``: reads GPUs, each value at its own rate (the table is in docs/design/runs.md).
``ticker``: samples a listener at its rate.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from clusterscape.errors import ConfigError
from clusterscape.track.listeners.contract import Listener, ListenerContext
from clusterscape.track.processes import PROFILERS

_HOMES = {
    "nvml": "NvmlListener",
    "proc": "ProcListener",
    "rapl": "RaplListener",
    "host": "HostListener",
    "dcgm": "DcgmListener",
    "prometheus": "PrometheusListener",
}
# radT's names of these listeners.
_RADT = {
    "smi": "nvml",
    "dcgmi": "dcgm",
    "top": "proc",
    "ps": "proc",
    "free": "host",
    "iostat": "host",
    "netstat": "host",
}
_NOT_THERE = frozenset({"macmon"})
DEFAULT_LISTENERS = ("proc", "nvml", "rapl")


class ListenerChoice(NamedTuple):
    """A listener by name, with its argument after ``=``."""

    name: str
    argument: str | None = None

    def __str__(self) -> str:
        return self.name if self.argument is None else f"{self.name}={self.argument}"

    def build(self, make_context: Callable[[str | None], ListenerContext]) -> Listener:
        """Create the listener; imports its module."""
        module = import_module(f"clusterscape.track.listeners.{self.name}")
        listener: Listener = getattr(module, _HOMES[self.name])(make_context(self.argument))
        return listener


def parse_listeners(words: Sequence[str]) -> tuple[list[ListenerChoice], list[str]]:
    """Distinct listeners, and radT's names without a listener here (such as profilers); unknown names are an error."""
    choices: dict[str, ListenerChoice] = {}
    others: list[str] = []
    for word in words:
        name, _, argument = word.strip().partition("=")
        name = _RADT.get(name.lower(), name.lower())
        if name in ("", "-", "none"):
            continue
        if name in _NOT_THERE or name in PROFILERS:
            others.append(name)
        elif name not in _HOMES:
            raise ConfigError(
                f"unknown listener `{name}`", hint=f"There are: {', '.join(_HOMES)}; radT's: {', '.join(_RADT)}."
            )
        else:
            choices[name] = ListenerChoice(name, _check_argument(name, argument) or None)
    return list(choices.values()), others


def _check_argument(name: str, argument: str) -> str:
    if name == "nvml" and argument:
        try:
            if not 0.01 <= float(argument) <= 100:
                raise ValueError
        except ValueError:
            raise ConfigError(f"nvml={argument} is not a rate", hint="Give hertz from 0.01 to 100: nvml=10.") from None
    if name == "dcgm" and argument and not argument.startswith(("http://", "https://")):
        raise ConfigError(
            f"dcgm={argument} is not an exporter's address",
            hint="dcgm=http://127.0.0.1:9400/metrics, or dcgm for dcgmi.",
        )
    if name == "prometheus" and not argument.startswith(("http://", "https://")):
        raise ConfigError("the prometheus listener needs an address", hint="prometheus=http://127.0.0.1:8000/metrics")
    return argument
