"""Verdicts and measures on shipped recordings and synthetic traces with known results."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from unit.collect.traces.trace_files import document, host, simple_rank, step, write

from clusterscape.analyze.trace.document import write_report
from clusterscape.analyze.trace.report import TraceReport, analyze_trace
from clusterscape.collect.traces import read_traces
from clusterscape.model.trace_report import VerdictKind, decode_report, encode_report

RECORDED = Path(__file__).parents[3] / "data/h200/traces"


def report_on(*paths: Path) -> TraceReport:
    return analyze_trace(read_traces(paths, workers=1), np.random.default_rng(0))


@pytest.fixture(scope="module")
def data_parallel() -> TraceReport:
    return report_on(*sorted(RECORDED.glob("ddp_*")))


@pytest.fixture(scope="module")
def pipeline() -> TraceReport:
    return report_on(*sorted(RECORDED.glob("pipe_*")))


def test_extra_work_comes_first_and_the_stall_is_named_when_both_are_planted(data_parallel: TraceReport) -> None:
    first, second = data_parallel.verdicts[:2]
    assert (first.kind, first.rank) == (VerdictKind.SLOW_WORKER, 0)
    assert first.evidence["extra_work"] == "master_extra_work"
    assert first.seconds_per_step == pytest.approx(0.0507, abs=0.002)
    assert (second.kind, second.rank, second.is_hidden) == (VerdictKind.INPUT_STALL, 3, True)
    assert second.seconds_per_step == pytest.approx(0.020, abs=0.001)


def test_all_collectives_match_when_ranks_are_recorded_together(data_parallel: TraceReport) -> None:
    assert data_parallel.matches.instances == 12
    assert data_parallel.matches.unmatched == 0
    assert all(clock.offset_ns == 0 for clock in data_parallel.alignment.clocks.values())


@pytest.mark.parametrize("name", ["data_parallel", "pipeline"])
def test_parts_add_up_to_the_step_when_a_rank_is_broken_down(name: str, request: pytest.FixtureRequest) -> None:
    table = request.getfixturevalue(name).breakdown
    total = table["compute_ns"] + table["exposed_ns"] + table["idle_ns"]
    assert (total == table["step_ns"]).all()
    assert (table["waiting_ns"] + table["transferring_ns"] == table["exposed_ns"]).all()
    assert table.select(pl.selectors.ends_with("_ns").min()).row(0) >= (0,) * 7


def test_slow_stage_is_named_when_it_has_more_layers(pipeline: TraceReport) -> None:
    first = pipeline.verdicts[0]
    assert (first.kind, first.stage) == (VerdictKind.STAGE_IMBALANCE, 2)


def test_bubble_adds_up_when_it_is_split(pipeline: TraceReport) -> None:
    bubble = pipeline.bubble
    assert bubble is not None
    assert (bubble.stages, bubble.micro_batches) == (4, 8)
    assert bubble.ideal == pytest.approx(3 / 11)
    assert bubble.ideal + bubble.imbalance + bubble.jitter == pytest.approx(bubble.measured)
    assert bubble.imbalance > 0.05


def test_imbalance_covers_ranks_or_stages_when_they_exist(data_parallel: TraceReport, pipeline: TraceReport) -> None:
    assert data_parallel.imbalance.ranks == pytest.approx(1.4, abs=0.1)
    assert data_parallel.imbalance.stages is None
    assert pipeline.imbalance.ranks is None
    assert pipeline.imbalance.stages == pytest.approx(0.26, abs=0.02)
    assert pipeline.imbalance.micro_batches is not None


def test_critical_path_is_as_long_as_the_step_when_it_is_walked(
    data_parallel: TraceReport, pipeline: TraceReport
) -> None:
    for report in (data_parallel, pipeline):
        path = report.critical_path
        assert path is not None
        ends = [segment.end_ns for segment in path.segments]
        starts = [segment.start_ns for segment in path.segments]
        assert starts[1:] == ends[:-1]
        step_ns = report.breakdown.filter(pl.col("step") == path.step)["step_ns"].to_numpy().mean()
        assert path.length_ns == pytest.approx(step_ns, rel=0.02)


def test_sends_find_their_receives_when_stages_are_neighbors(pipeline: TraceReport) -> None:
    messages = pipeline.matches.messages
    assert messages.height == 3 * 2 * 8 * 3
    assert (messages["send_micro_batch"] == messages["recv_micro_batch"]).all()


def test_late_rank_is_named_when_it_always_comes_last(tmp_path: Path) -> None:
    for rank in range(4):
        write(tmp_path / f"rank{rank}.json", simple_rank(rank, 4, late_us=200 if rank == 2 else 0))
    report = report_on(tmp_path)
    verdict = report.verdicts[0]
    assert (verdict.kind, verdict.rank) == (VerdictKind.SLOW_WORKER, 2)
    assert verdict.seconds_per_step == pytest.approx(200e-6)
    assert report.slack[0].last_times == 4


def test_nothing_is_significant_when_all_ranks_are_copies(tmp_path: Path) -> None:
    for rank in range(8):
        write(tmp_path / f"rank{rank}.json", simple_rank(0, 8))
    report = report_on(tmp_path)
    assert [facts.rank for facts in report.trace.ranks] == list(range(8))
    assert report.slack == ()
    assert not [verdict for verdict in report.verdicts if verdict.rank is not None]


def test_irregularities_are_reported_when_ranks_or_steps_are_missing(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", simple_rank(0, 4, steps=4))
    write(tmp_path / "rank2.json", simple_rank(2, 4, steps=3))
    notes = "\n".join(report_on(tmp_path).notes)
    assert "Ranks 1, 3 are missing" in notes
    assert "most have" in notes
    assert "do not match on all 2 ranks" not in notes or "are ignored" in notes


def test_collectives_of_common_steps_match_when_step_counts_differ(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", simple_rank(0, 2, steps=4))
    write(tmp_path / "rank1.json", simple_rank(1, 2, steps=3))
    report = report_on(tmp_path)
    assert report.matches.instances == 3
    assert report.matches.unmatched == 1


def test_host_operators_count_when_there_is_no_device(tmp_path: Path) -> None:
    events = [step(0, 0, 1000), host("aten::mm", 100, 300)]
    report = report_on(write(tmp_path / "rank0.json", document(events, 0, 1)))
    assert report.breakdown["compute_ns"].to_list() == [300_000]
    assert any("No rank has device spans" in note for note in report.notes)


@pytest.mark.parametrize(("jump_us", "word"), [(50e6, "forward"), (-50e6, "back")])
def test_clock_jump_is_reported_when_a_clock_is_set(tmp_path: Path, jump_us: float, word: str) -> None:
    at = [1e9 + 1000 * number + (jump_us if number > 2 else 0) for number in range(6)]
    events = [step(number, start, 1000) for number, start in enumerate(at)]
    notes = report_on(write(tmp_path / "rank0.json", document(events, 0, 1))).notes
    assert any(f"jumps {word} by" in note and "between steps 2 and 3" in note for note in notes)


def test_document_is_the_same_when_it_was_stored_and_read(data_parallel: TraceReport, pipeline: TraceReport) -> None:
    written = write_report(data_parallel)
    assert written.collectives.last_arrivers[0].rank == 0
    assert written.verdicts[0].kind == "slow_worker"
    assert written.bubble is None
    bubble = write_report(pipeline).bubble
    assert bubble is not None
    assert bubble.stages == 4
    for report in (data_parallel, pipeline):
        assert decode_report(encode_report(write_report(report))) == write_report(report)


def test_document_is_read_when_an_earlier_version_stored_it(data_parallel: TraceReport) -> None:
    written = write_report(data_parallel)
    fields = json.loads(encode_report(written))
    del fields["flops_source"], fields["ranks"][0]["world_size"]
    fields["imbalance"]["ranks_ratio"] = math.nan  # written by Python's JSON, refused by other parsers
    fields["no longer known"] = 1
    read = decode_report(json.dumps(fields).encode())
    assert (read.verdicts, read.breakdown, read.flops_source) == (written.verdicts, written.breakdown, None)
    assert read.imbalance.ranks_ratio is not None
    assert math.isnan(read.imbalance.ranks_ratio)
