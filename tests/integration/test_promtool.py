"""Exported alerting rules as the real promtool reads and judges them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from servers.programs import need_program

from clusterscape.analyze.rules.prometheus_rules import to_prometheus_rules
from clusterscape.analyze.rules.reading import parse_rule
from clusterscape.analyze.rules.shipped import shipped_rules
from clusterscape.model.rules import Rule, Severity

pytestmark = pytest.mark.server


def rule(text: str, key: str = "test") -> Rule:
    return parse_rule(text, key=key, name='Test {{ "x" }}', severity=Severity.WARNING)


def check(folder: Path, text: str) -> str:
    path = folder / "rules.yml"
    path.write_text(text, encoding="utf-8")
    promtool = need_program("promtool", "prometheus")
    done = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{text}"
    return done.stdout


def test_shipped_rules_are_valid_when_exported(tmp_path: Path) -> None:
    rules = [shipped.rule for shipped in shipped_rules() if not shipped.rule.scope.subject.is_lifeless]
    text, skipped = to_prometheus_rules(rules)
    assert not skipped
    assert f"{len(rules)} rules found" in check(tmp_path, text)
    without, skipped = to_prometheus_rules(rules, job_label=None)
    assert [(shipped.key, why) for shipped, why in skipped] == [
        ("gpu-imbalance", "it compares the GPUs of a workload, and no label names it")
    ]
    check(tmp_path, without)


@pytest.mark.parametrize(
    "text",
    [
        "gpu_util p95 over last 30m > 90%",
        "power p50 < 70% and gpu_util p95 > 90% or memory_used now > 10GiB",
        "share of power below 30% over last 1h > 50%",
        "memory_used slope over last 2h > 1%/h",
        "spread of power mean over last 1h > 30% on any GPU with at least 2 GPUs",
        "ecc_dbe_volatile increase > 0 on 50% of GPUs after 0s",
        "gpu_util std over last 10m = 0 on all GPUs",
    ],
)
def test_rule_is_valid_when_exported(tmp_path: Path, text: str) -> None:
    exported, skipped = to_prometheus_rules([rule(text)])
    assert not skipped
    check(tmp_path, exported)


def fired(folder: Path, rules: list[Rule], series: dict[str, str], minute: int) -> set[tuple[str, str | None]]:
    """(job, gpu) of alerts that fire in promtool after this many minutes of these series, one value a minute."""
    text, skipped = to_prometheus_rules(rules)
    assert not skipped
    check(folder, text)
    wanted: dict[str, Any] = {"eval_time": f"{minute}m", "alertname": "test", "exp_alerts": []}
    suite = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [wanted],
            }
        ],
    }
    path = folder / "suite.yml"
    path.write_text(json.dumps(suite))
    promtool = need_program("promtool", "prometheus")
    done = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, check=False)
    # No alert is expected, so promtool prints those it got.
    got = done.stdout + done.stderr
    return {
        (_label(line, "hpc_job") or "", _label(line, "gpu")) for line in got.splitlines() if 'alertname="test"' in line
    }


def _label(line: str, name: str) -> str | None:
    _, separator, rest = line.partition(f'{name}="')
    return rest.partition('"')[0] if separator else None


def unit(metric: str, gpu: int, job: str) -> str:
    return f'{metric}{{gpu="{gpu}", UUID="GPU-{gpu}", Hostname="n1", instance="n1:9400", hpc_job="{job}"}}'


UTIL, POWER, LIMIT = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_MGMT_LIMIT"


def test_only_the_unit_that_meets_both_fires_when_two_metrics_are_joined(tmp_path: Path) -> None:
    series = {unit(UTIL, gpu, "7"): "100x60" for gpu in range(3)}
    series |= {unit(LIMIT, gpu, "7"): "700x60" for gpu in range(3)}
    series |= {unit(POWER, 0, "7"): "120x60", unit(POWER, 1, "7"): "650x60"}
    both = rule("gpu_util p95 > 90% and power p50 < 70%")
    assert fired(tmp_path, [both], series, 30) == {("7", "0")}
    assert fired(tmp_path, [both], series, 5) == set()  # too young


def test_life_is_the_jobs_own_when_another_had_the_gpu_before(tmp_path: Path) -> None:
    low = rule("gpu_util p50 < 50%")
    idle_before = {unit(UTIL, 0, "7"): "0x60 stale", unit(UTIL, 0, "8"): "_x60 100x60"}
    assert fired(tmp_path, [low], idle_before, 50) == {("7", "0")}
    assert fired(tmp_path, [low], idle_before, 100) == set()
    busy_before = {unit(UTIL, 0, "7"): "100x60 stale", unit(UTIL, 0, "8"): "_x60 0x60"}
    assert fired(tmp_path, [low], busy_before, 100) == {("8", "0")}


def test_workload_fires_once_when_any_of_its_units_is_enough(tmp_path: Path) -> None:
    series = {unit(UTIL, gpu, "7"): "0x60" if gpu == 0 else "100x60" for gpu in range(4)}
    assert fired(tmp_path, [rule("gpu_util mean over last 10m < 5% on any GPU")], series, 30) == {("7", None)}
    assert fired(tmp_path, [rule("gpu_util mean over last 10m < 5% on 50% of GPUs")], series, 30) == set()
    assert fired(tmp_path, [rule("gpu_util mean over last 10m > 95% on 75% of GPUs")], series, 30) == {("7", None)}
    spread = rule("spread of gpu_util mean over last 10m > 30% on any GPU with at least 2 GPUs")
    assert fired(tmp_path, [spread], series, 30) == {("7", None)}


def test_share_of_time_is_judged_when_it_is_over_the_value(tmp_path: Path) -> None:
    series = {unit(UTIL, 0, "7"): "0x20 100x40", unit(UTIL, 1, "7"): "0x40 100x20"}
    assert fired(tmp_path, [rule("share of gpu_util below 5% over last 1h > 50%")], series, 60) == {("7", "1")}


def test_xid_counts_when_its_code_is_of_hardware(tmp_path: Path) -> None:
    error = rule("xid_hardware now > 0 and xid_hardware std > 0 with 2 samples after 0s")
    codes = {
        "0": "0x60",
        "1": "0x20 13x40",
        "2": "0x20 79x40",
        "3": "13x20 79x40",
        "4": "79x60",
        "5": "0x20 79x20 31x20",
    }
    series = {unit(UTIL, int(gpu), "7"): "100x60" for gpu in codes}
    series |= {unit("DCGM_FI_DEV_XID_ERRORS", int(gpu), "7"): values for gpu, values in codes.items()}
    assert fired(tmp_path, [error], series, 55) == {("7", "2"), ("7", "3")}
