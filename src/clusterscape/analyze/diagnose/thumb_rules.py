"""The rules of thumb of ``thumb_rules.toml``, read once."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from clusterscape.model.findings import FindingKind


@dataclass(frozen=True, slots=True)
class ThumbRule:
    """When a pattern is worth a finding, and why."""

    reason: str
    numbers: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]


@cache
def read_thumb_rules() -> Mapping[FindingKind, ThumbRule]:
    """One rule for every kind of finding."""
    text = files("clusterscape.analyze.diagnose").joinpath("thumb_rules.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return MappingProxyType({kind: _parse_rule(tables[kind]) for kind in FindingKind})


def _parse_rule(table: Mapping[str, str | float]) -> ThumbRule:
    numbers = {name: float(value) for name, value in table.items() if name != "reason"}
    return ThumbRule(str(table["reason"]), MappingProxyType(numbers))
