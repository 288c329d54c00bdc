"""The rules that come with ClusterScape, from ``shipped.toml``: each with its reason and how it avoids false alarms."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model.rules import Rule, Severity


@dataclass(frozen=True, slots=True)
class ShippedRule:
    """A rule and the other parts of its documentation."""

    rule: Rule
    false_alarms: str  # how the rule avoids them
    source: str  # where the thresholds come from


@cache
def shipped_rules() -> tuple[ShippedRule, ...]:
    """All shipped rules, in the order of the file."""
    text = resources.files(__package__).joinpath("shipped.toml").read_text(encoding="utf-8")
    return tuple(_build(entry) for entry in tomllib.loads(text)["rule"])


def find_shipped_rule(key: str) -> ShippedRule | None:
    """The shipped rule with this key, if any."""
    return next((shipped_rule for shipped_rule in shipped_rules() if shipped_rule.rule.key == key), None)


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
