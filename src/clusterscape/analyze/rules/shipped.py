"""The rules that come with ClusterScape, from ``shipped.toml``: each with its reason and why it seldom cries wolf."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model.rules import Rule, Severity


@dataclass(frozen=True, slots=True)
class ShippedRule:
    """A rule and what its documentation says besides."""

    rule: Rule
    false_alarms: str  # what is done against them, minimum age included
    source: str  # where the thresholds come from


@cache
def shipped_rules() -> tuple[ShippedRule, ...]:
    """All of them, in the order of the file."""
    text = resources.files(__package__).joinpath("shipped.toml").read_text(encoding="utf-8")
    return tuple(_build(entry) for entry in tomllib.loads(text)["rule"])


def find_shipped_rule(key: str) -> ShippedRule | None:
    """The shipped rule of that key."""
    return next((one for one in shipped_rules() if one.rule.key == key), None)


def _build(entry: dict[str, str]) -> ShippedRule:
    rule = parse_rule(
        entry["text"],
        key=entry["key"],
        name=entry["name"],
        severity=Severity(entry["severity"]),
        reason=entry["reason"],
    )
    return ShippedRule(
        replace(rule, advice=entry.get("advice", ""), is_shipped=True), entry["false_alarms"], entry["source"]
    )
