"""Rules on GPUs, nodes and sources: the meaning of their text, its limits, and the rows they apply to."""

import numpy as np
import pytest
from hypothesis import given
from unit.analyze.rules.rule_strategies import hardware_rules

from clusterscape.analyze.rules.completion import complete
from clusterscape.analyze.rules.documents import read_document, write_document
from clusterscape.analyze.rules.evaluation import evaluate
from clusterscape.analyze.rules.facts import OUT_OF_SCOPE, TRUE, LifeFacts
from clusterscape.analyze.rules.prometheus_rules import to_prometheus_rules
from clusterscape.analyze.rules.reading import parse_rule, parse_text
from clusterscape.analyze.rules.writing import explain_in_words, format_rule, format_text
from clusterscape.analyze.stats.exact import ExactColumns, Series
from clusterscape.errors import RuleDocumentError, RuleSyntaxError
from clusterscape.model import UnitId, WorkloadId
from clusterscape.model.rules import Quantifier, Rule, Subject


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("xid_error now >= 46 for every GPU", Subject.GPUS),
        ("XID now >= 46 for every gpu", Subject.GPUS),
        ("node_down min over last 2m > 0 for every node", Subject.NODES),
        ("source_failing now > 50% for every source", Subject.SOURCES),
        ("gpu_util p95 < 5%", Subject.WORKLOADS),
    ],
)
def test_subject_is_read_when_a_rule_names_it(text: str, subject: Subject) -> None:
    assert parse_text(text).scope.subject is subject


@pytest.mark.parametrize(
    "text",
    [
        "xid_error now >= 46 for every GPU",
        "gpu_temperature max over last 10m > 90C for every GPU for name gpu0* on any GPU",
        "spread of gpu_temperature mean over last 1h > 20C for every GPU for partition a100 on any GPU",
        "node_down min over last 2m > 0 for every node with 2 samples",
        "source_failing now > 50% for every source for name slurm",
    ],
)
def test_text_is_canonical_when_it_is_written_again(text: str) -> None:
    parsed = parse_text(text)
    assert format_text(parsed.expression, parsed.scope) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu_util p95 < 5% for every GPU", "no life"),
        ("node_down max > 0 or node_drained now > 0 for every node", "no life"),
        ("xid_error now > 0 for every GPU for user ann", "every GPU has no user"),
        ("xid_error now > 0 for project p1 for every node", "every node has no project"),
        ("xid_error now > 0 for every GPU after 10m", "every GPU has no age"),
        ("node_down now > 0 for every node on any GPU", "every node has no GPU to blame"),
        ("source_failing now > 0% for every source for partition a100", "every source has no partition"),
        ("xid_error now > 0 for every node for every GPU", "occurs twice"),
        ("xid_error now > 0 for every rack", "expected `GPU`, `node`, `source`, `user` or `project`"),
    ],
)
def test_clause_is_refused_when_the_subject_does_not_have_it(text: str, message: str) -> None:
    with pytest.raises(RuleSyntaxError, match=message):
        parse_text(text)


def test_document_is_refused_when_no_text_can_express_it() -> None:
    document = write_document(parse_rule("node_down now > 0 for every node", key="k", name="n"))
    document["scope"]["users"] = ["ann"]
    with pytest.raises(RuleDocumentError, match=r"scope\.users: nodes have no user"):
        read_document(document)
    document = write_document(parse_rule("gpu_util p95 < 5%", key="k", name="n"))
    document["scope"] |= {"subject": "gpus", "min_age_ms": 0}
    with pytest.raises(RuleDocumentError, match="no life"):
        read_document(document)


@given(hardware_rules)
def test_rule_is_the_same_when_it_is_written_and_read(rule: Rule) -> None:
    assert parse_text(format_rule(rule)) == (rule.expression, rule.scope)
    assert read_document(write_document(rule)) == rule


def test_old_document_judges_workloads_when_it_names_no_subject() -> None:
    document = write_document(parse_rule("gpu_util p95 < 5%", key="k", name="n"))
    del document["scope"]["subject"]
    assert read_document(document).scope.subject is Subject.WORKLOADS


def test_explanation_names_the_subject_when_a_rule_is_explained() -> None:
    rule = parse_rule("xid_error now >= 46 for every GPU for machine type A100* on any GPU", key="k", name="n")
    assert rule.scope.quantifier is Quantifier.ANY
    assert explain_in_words(rule) == [
        "xid_error now >= 46: Last XID, now, is at least 46.",
        "Applies to every GPU, allocated or not, of machine types A100*; reports the node if any of its GPUs meets this.",
    ]


def test_subjects_are_offered_when_a_rule_is_typed() -> None:
    offered = [completion.insert for completion in complete("xid_error now > 0 for ev")]
    assert offered == ["every GPU", "every node", "every source", "every user", "every project"]


def test_nodes_are_left_out_when_rules_are_written_for_prometheus() -> None:
    rules = [
        parse_rule("node_down now > 0 for every node", key="node-down", name="n"),
        parse_rule("xid_error now >= 46 for every GPU", key="gpu-fault", name="n"),
    ]
    written, skipped = to_prometheus_rules(rules)
    assert "DCGM_FI_DEV_XID_ERRORS" in written
    assert "hpc_job" not in written, "the rule applies to allocated and free GPUs"
    assert [(rule.key, why) for rule, why in skipped] == [("node-down", "the exporter has no series of nodes")]


@pytest.mark.parametrize("subject", [Subject.WORKLOADS, Subject.GPUS, Subject.NODES])
def test_rule_judges_only_its_subject_when_rows_are_of_another(subject: Subject) -> None:
    series = {"xid_error_code": Series.from_table(np.array([1_000]), np.array([[79.0]]))}
    facts = LifeFacts(
        units=[UnitId("n1:0")],
        workload=np.zeros(1, np.int32),
        age_ms=np.array([10**9]),
        workloads=[WorkloadId("node:n1")],
        users=[None],
        projects=[None],
        partitions=["a\nb"],
        machine_types=[None],
        names=["n1"],
        gpus=np.ones(1, np.int64),
        subject=subject,
    )
    rule = parse_rule("xid_error now >= 46 for every GPU for partition b", key="k", name="n")
    (state,) = evaluate([rule], ExactColumns(series, 1), facts).states[0]
    assert state == (TRUE if subject is Subject.GPUS else OUT_OF_SCOPE)
