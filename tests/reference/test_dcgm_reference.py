"""dcgm-exporter's own metric lists and Datadog's recorded exporter text."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from servers.reference import reference_data

from clusterscape.collect.exposition import ExpositionParser
from clusterscape.ingest.drops import DropReason, Drops
from clusterscape.ingest.normalize import Normalizer
from clusterscape.model import ALIASES, UnixMs

NOW = UnixMs(1_700_000_000_000)
FIELD = re.compile(r"^#?\s*((?:DCGM|dcgm)_\w+)\s*,\s*(\w+)\s*,", re.MULTILINE)
TEXTS = ("metrics.txt", "label_remap.txt")


def read_text(name: str) -> str:
    """The recording; its last line may lack the line feed that exporters send."""
    path: Path = reference_data("telemetry", "datadog", "dcgm", name)
    return path.read_text(encoding="utf-8").rstrip("\n") + "\n"


@pytest.mark.parametrize(
    ("name", "at_least"),
    [("default-counters.csv", 54), ("dcp-metrics-included.csv", 50), ("1.x-compatibility-metrics.csv", 40)],
)
def test_every_field_is_in_the_catalogue_when_dcgm_exporter_lists_it(name: str, at_least: int) -> None:
    text = reference_data("telemetry", "dcgm-exporter", name).read_text(encoding="utf-8")
    fields = [field for field, kind in FIELD.findall(text) if kind != "label"]

    assert len(fields) >= at_least
    assert [field for field in fields if field not in ALIASES] == []


@pytest.mark.parametrize("name", TEXTS)
def test_recorded_text_reads_as_the_reference_parser_reads_it_when_parsed(name: str) -> None:
    text = read_text(name)
    expected = sorted(
        (sample.name, tuple(sorted(sample.labels.items())), float(sample.value))
        # Without types, for which that parser renames counters.
        for family in text_string_to_metric_families(re.sub(r"(?m)^# TYPE.*\n", "", text))
        for sample in family.samples
    )

    scrape = ExpositionParser("recorded").parse(text.encode(), fetched_at=NOW)

    samples = sorted(
        (series.name, tuple(sorted(series.labels.items())), value)
        for series, value in zip(
            (scrape.table.series[code] for code in scrape.series), scrape.value.tolist(), strict=True
        )
    )
    assert samples == expected
    assert not scrape.malformed


def test_recorded_text_becomes_samples_when_normalized() -> None:
    scrape = ExpositionParser("recorded").parse(read_text("metrics.txt").encode(), fetched_at=NOW)

    normalized = Normalizer(Drops()).normalize([scrape], now_ms=NOW)

    batch = normalized.batch
    values = {
        (batch.units.values[unit], batch.metrics.values[metric]): value
        for unit, metric, value in zip(batch.unit, batch.metric, batch.value.tolist(), strict=True)
    }
    assert values["424773df46e0:0", "power_watts"] == 8.969
    assert values["424773df46e0:0", "energy_joules"] == pytest.approx(128996.013)
    assert values["424773df46e0:0", "sm_clock_hertz"] == 300e6
    assert set(normalized.dropped) == {DropReason.UNKNOWN_METRIC, DropReason.NO_NODE}
    assert len(batch) + sum(normalized.dropped.values()) == len(scrape.series)
    assert normalized.facts is not None
    unit = next(unit for unit in normalized.facts.units if unit.node == "424773df46e0")
    assert unit.machine_type == "T4-16G"


def test_pod_is_the_holder_when_recorded_text_labels_one() -> None:
    scrape = ExpositionParser("recorded").parse(read_text("label_remap.txt").encode(), fetched_at=NOW)

    facts = Normalizer(Drops()).normalize([scrape], now_ms=NOW).facts

    assert facts is not None
    assert facts.labels == {"424773df46e0:0": ("kubernetes:foo/bar",)}
