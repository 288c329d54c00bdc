"""Export of rules to Prometheus, and the reasons of refusals."""

from dataclasses import replace

import pytest

from clusterscape.analyze.rules.prometheus_rules import to_prometheus_rules
from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.model.rules import Rule, Severity


def rule(text: str) -> Rule:
    return parse_rule(text, key="test", name="Test", severity=Severity.WARNING)


def test_condition_is_in_the_exporters_unit_when_exported() -> None:
    text, _ = to_prometheus_rules([rule("gpu_util p95 over last 30m > 90% with 1 sample after 0s")], job_label=None)
    assert "quantile_over_time(0.95, DCGM_FI_DEV_GPU_UTIL[30m]) > 90)\n" in text


def test_window_is_stated_when_it_stands_for_a_life() -> None:
    text, _ = to_prometheus_rules([rule("gpu_util p95 > 57%")], life_window_ms=12 * 3_600_000)
    assert "# Over the last 12h instead of the workload's life; series start with their hpc_job." in text
    assert 'quantile_over_time(0.95, DCGM_FI_DEV_GPU_UTIL{hpc_job!=""}[12h]) > 57' in text
    assert 'DCGM_FI_DEV_GPU_UTIL{hpc_job!=""} offset 10m' in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("longest gpu_util below 5% > 30m", "the longest run"),
        ("gpu_util p50 < 50% for user ada", "no labels for users"),
    ],
)
def test_reason_is_given_when_a_rule_cannot_be_exported(text: str, why: str) -> None:
    exported, ((left_out, reason),) = to_prometheus_rules([rule(text)])
    assert left_out.key == "test"
    assert why in reason
    assert reason in exported
    assert "groups: []" in exported


def test_rule_is_left_out_when_it_is_switched_off() -> None:
    _, skipped = to_prometheus_rules([replace(rule("gpu_util p50 < 50%"), is_enabled=False)])
    assert skipped[0][1] == "it is disabled"
