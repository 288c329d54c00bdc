"""Exporters with wrong names, as dcgm-exporter writes them: each GPU counts once, on the scheduler's node."""

from collections.abc import Mapping, Sequence

import pytest

from clusterscape.collect.exposition import ExpositionParser
from clusterscape.ingest.drops import Drops
from clusterscape.ingest.exporter_labels import MOVED_AFTER_MS
from clusterscape.ingest.exporter_matching import ExporterMatcher
from clusterscape.ingest.ledger import EXPORTERS, Ledger
from clusterscape.ingest.normalize import RESTATE_MS, Normalizer
from clusterscape.model import InventoryObserved, Node, NodeId, RawScrape, Unit, UnixMs, gpu_unit_id
from clusterscape.model.inventory import NameQuestion

START = UnixMs(1_790_000_000_000)
SLURM = ("gpu01", "gpu02", "gpu03")


def exporter_text(host: str | None, serial: str, gpus: int = 2, *, model: str = "NVIDIA A100-SXM4-80GB") -> str:
    """Text of dcgm-exporter 3; ``serial`` identifies the machine regardless of its name."""
    own = f',Hostname="{host}"' if host is not None else ""
    lines = ["# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    lines += [
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",UUID="GPU-{serial}-{i}",pci_bus_id="00000000:{i:02x}:00.0",device="nvidia{i}",'
        f'modelName="{model}"{own},DCGM_FI_DRIVER_VERSION="535.129.03"}} {10 + i}'
        for i in range(gpus)
    ]
    return "\n".join(lines) + "\n"


class Site:
    """A ledger, matcher and a normalizer, fed by exporters at addresses and a scheduler."""

    def __init__(self, node_names: Mapping[str, str] | None = None) -> None:
        self.ledger = Ledger()
        self.matcher = ExporterMatcher(node_names)
        self.normalizer = Normalizer(Drops(), matcher=self.matcher, uuid_nodes=self.ledger.uuid_nodes)
        self.now = START
        self.parsers: dict[str, ExpositionParser] = {}

    def schedule(
        self,
        nodes: Sequence[str] = SLURM,
        *,
        gpus: int = 2,
        machine_type: str | None = "A100",
        host_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        inventory = InventoryObserved(
            source="slurm",
            at=self.now,
            nodes=[Node(id=NodeId(n), gpu_count=gpus, machine_type=machine_type, partitions=("all",)) for n in nodes],
            units=[Unit(id=gpu_unit_id(NodeId(n), i), node=NodeId(n), index=i) for n in nodes for i in range(gpus)],
            host_names={NodeId(node): names for node, names in (host_names or {}).items()},
        )
        self.ledger.apply_inventory(inventory)
        self.matcher.update_nodes(self.ledger.scheduled_nodes(), inventory.host_names)
        facts = self.normalizer.settle(self.now)
        if facts is not None:
            self.ledger.apply_hardware(facts, source=EXPORTERS, at=self.now)

    def scrape(self, texts: Mapping[str, str], *, after_ms: int = 15_000) -> None:
        """One round: texts by address, ``address node=NAME`` where the settings name the node."""
        self.now = UnixMs(self.now + after_ms)
        facts = self.normalizer.normalize(
            [self.parse(target, text) for target, text in texts.items()], now_ms=self.now
        ).facts
        if facts is not None:
            self.ledger.apply_hardware(facts, source=EXPORTERS, at=self.now)

    def parse(self, target: str, text: str) -> RawScrape:
        address, _, node = target.partition(" node=")
        parser = self.parsers.setdefault(
            target, ExpositionParser(f"http://{address}/metrics", NodeId(node) if node else None, address=address)
        )
        return parser.parse(text.encode(), fetched_at=self.now)

    @property
    def counted(self) -> dict[str, int]:
        """GPUs by node."""
        counts: dict[str, int] = dict.fromkeys(self.ledger.nodes, 0)
        for unit in self.ledger.units.values():
            counts[str(unit.node)] += 1
        return counts

    @property
    def questions(self) -> dict[str, NameQuestion]:
        return {question.exporter: question for question in self.normalizer.find_questions()}

    def uuids(self, node: str) -> list[str | None]:
        return [unit.uuid for unit in self.ledger.units.values() if unit.node == node]


def whole(site: Site) -> None:
    """Check the counts that must hold for any names of exporters."""
    assert site.counted == dict.fromkeys(SLURM, 2)
    uuids = [unit.uuid for unit in site.ledger.units.values() if unit.uuid is not None]
    assert len(uuids) == len(set(uuids))


@pytest.mark.parametrize(
    ("targets", "hosts"),
    [
        (("localhost:19401", "localhost:19402", "localhost:19403"), SLURM),  # forwarded ports
        (("10.0.0.1:9400", "10.0.0.2:9400", "10.0.0.3:9400"), SLURM),
        (("alias-a:9400", "alias-b:9400", "alias-c:9400"), SLURM),
        (("bastion:19401", "bastion:19402", "bastion:19403"), tuple(f"{n}.site.org" for n in SLURM)),
        (("GPU01:9400", "GPU02:9400", "GPU03:9400"), ("424773df46e0", "5b1c00aa17f2", "cc03d1e09a44")),
        (tuple(f"{n}.site.org:9400" for n in SLURM), (None, None, None)),
        (("10.0.0.1:9400", "10.0.0.2:9400", "10.0.0.3:9400"), ("ib-1", "ib-2", "ib-3")),  # by Slurm's NodeAddr
    ],
)
@pytest.mark.parametrize("scheduler_is_first", [True, False])
def test_every_gpu_counts_once_when_names_differ(
    targets: Sequence[str], hosts: Sequence[str | None], scheduler_is_first: bool
) -> None:
    site = Site()
    addresses = {node: [f"10.0.0.{number}"] for number, node in enumerate(SLURM, 1)}
    if scheduler_is_first:
        site.schedule(host_names=addresses)
    texts = {target: exporter_text(host, f"m{n}") for n, (target, host) in enumerate(zip(targets, hosts, strict=True))}
    site.scrape(texts)
    if not scheduler_is_first:
        site.schedule(host_names=addresses)

    whole(site)
    assert [site.uuids(node) for node in SLURM] == [[f"GPU-m{n}-0", f"GPU-m{n}-1"] for n in range(3)]
    assert site.questions == {}
    assert site.matcher.nodes_without_exporter() == []


def test_alias_is_a_question_with_a_proposal_when_nothing_ties_it() -> None:
    site = Site()
    site.schedule()
    site.scrape(
        {
            "gpu01:9400": exporter_text("gpu01", "m1"),
            "10.1.0.7:9400": exporter_text("c7a9", "m2"),
            "10.1.0.8:9400": exporter_text("c7b0", "m3"),
        }
    )

    whole(site)
    assert site.matcher.nodes_without_exporter() == ["gpu02", "gpu03"]
    question = site.questions["10.1.0.7:9400"]
    assert question == NameQuestion(
        exporter="10.1.0.7:9400",
        host_name="c7a9",
        gpus=2,
        problem='reports host name "c7a9", which is not a node of any scheduler; '
        "it may be gpu02, gpu03, without an exporter so far",
        proposed=NodeId("gpu02"),
        setting='"10.1.0.7:9400" = "gpu02"',
        is_counted=False,
    )
    assert site.questions["10.1.0.8:9400"].setting == '"10.1.0.8:9400" = "gpu03"'


@pytest.mark.parametrize("key", ["10.1.0.7:9400", "10.1.0.7", "c7a9", "C7A9"])
def test_question_is_answered_when_the_proposed_line_is_in_the_settings(key: str) -> None:
    site = Site({key: "gpu02"})
    site.schedule()
    site.scrape({"gpu01:9400": exporter_text("gpu01", "m1"), "10.1.0.7:9400": exporter_text("c7a9", "m2")})

    whole(site)
    assert site.uuids("gpu02") == ["GPU-m2-0", "GPU-m2-1"]
    assert site.questions == {}
    assert site.matcher.nodes_without_exporter() == ["gpu03"]


def test_exporter_is_tied_by_its_gpus_when_another_name_shows_the_same_ones() -> None:
    site = Site()
    site.schedule()
    site.scrape(
        {
            "gpu01:9400": exporter_text("gpu01", "m1"),
            "alias:9400": exporter_text("c7a9", "m1"),
            "gpu02:9400": exporter_text("gpu02", "m2"),
            "gpu03:9400": exporter_text("gpu03", "m3"),
        }
    )

    whole(site)
    assert site.questions == {}


def test_exporter_is_tied_by_its_gpus_when_an_earlier_run_knew_it() -> None:
    site = Site()
    site.schedule()
    site.scrape({"gpu02:9400": exporter_text("gpu02", "m2")})
    again = Site()
    again.ledger = Ledger(nodes=site.ledger.nodes.values(), units=site.ledger.units.values())
    again.normalizer = Normalizer(Drops(), matcher=again.matcher, uuid_nodes=again.ledger.uuid_nodes)
    again.schedule()
    again.scrape({"10.1.0.7:9400": exporter_text("c7a9", "m2")})

    whole(again)
    assert again.questions == {}


def test_extra_host_is_counted_and_questioned_when_every_node_has_an_exporter() -> None:
    site = Site()
    site.schedule()
    texts = {f"{node}:9400": exporter_text(node, node) for node in SLURM}
    site.scrape({**texts, "workstation:9400": exporter_text("workstation", "ws", 1)})

    assert site.counted == {**dict.fromkeys(SLURM, 2), "workstation": 1}
    question = site.questions["workstation:9400"]
    assert (question.is_counted, question.setting) == (True, '"workstation:9400" = "workstation"')
    accepted = Site({"workstation:9400": "workstation"})
    accepted.schedule()
    accepted.scrape({**texts, "workstation:9400": exporter_text("workstation", "ws", 1)})
    assert accepted.counted == site.counted
    assert accepted.questions == {}


def test_exporter_is_no_candidate_when_its_gpus_cannot_be_those_of_the_node() -> None:
    site = Site()
    site.schedule()
    site.scrape(
        {"10.1.0.7:9400": exporter_text("c7a9", "t4", model="Tesla T4"), "10.1.0.8:9400": exporter_text("x", "big", 8)}
    )

    assert site.counted == {**dict.fromkeys(SLURM, 2), "c7a9": 2, "x": 8}
    assert {question.is_counted for question in site.questions.values()} == {True}


def test_host_name_wins_and_is_questioned_when_the_address_belongs_to_another_node() -> None:
    site = Site()
    site.schedule()
    site.scrape({"gpu01:9400": exporter_text("gpu02", "m2")})

    assert site.uuids("gpu02") == ["GPU-m2-0", "GPU-m2-1"]
    assert site.questions["gpu01:9400"].problem == (
        'is scraped at gpu01 but reports host name "gpu02"; both are nodes, and it is matched to gpu02'
    )


def test_address_decides_when_several_exporters_call_themselves_the_same() -> None:
    site = Site()
    site.schedule()
    site.scrape({f"{node}:9400": exporter_text("gpu01", f"m-{node}") for node in SLURM})

    whole(site)
    assert [site.uuids(node) for node in SLURM] == [[f"GPU-m-{node}-0", f"GPU-m-{node}-1"] for node in SLURM]


def test_gpus_of_different_machines_are_not_mixed_when_they_share_a_name_and_no_scheduler_is_there() -> None:
    site = Site()
    site.scrape({f"10.0.0.{n}:9400": exporter_text("dcgm", f"m{n}") for n in (1, 2)})

    assert sorted(site.counted.values()) == [2, 2]
    assert sorted(unit.uuid or "" for unit in site.ledger.units.values()) == [
        "GPU-m1-0",
        "GPU-m1-1",
        "GPU-m2-0",
        "GPU-m2-1",
    ]


@pytest.mark.parametrize(
    ("target", "host", "node"),
    [
        ("gpu-001.site.org:9400", "424773df46e0", "gpu-001"),
        ("localhost:19401", "gpu-001", "gpu-001"),
        ("127.0.0.1:19401", "gpu-001.site.org", "gpu-001"),
        ("10.0.0.5:9400", "gpu-001", "gpu-001"),
        ("10.0.0.5:9400", None, "10.0.0.5"),
        ("localhost:9400", None, "localhost"),
        ("localhost:9400", "localhost", "localhost"),
    ],
)
def test_host_gets_its_most_specific_name_when_there_is_no_scheduler(target: str, host: str | None, node: str) -> None:
    site = Site()
    site.scrape({target: exporter_text(host, "m1")})

    assert site.counted == {node: 2}
    assert site.questions == {}


def test_configured_node_wins_when_other_evidence_contradicts_it() -> None:
    site = Site()
    site.schedule()
    site.scrape({"gpu01:9400 node=gpu03": exporter_text("gpu02", "m3")})

    assert site.uuids("gpu03") == ["GPU-m3-0", "GPU-m3-1"]
    assert site.questions == {}


def test_question_is_raised_when_the_configured_node_name_has_a_typo() -> None:
    site = Site()
    site.schedule()
    site.scrape({"10.0.0.1:9400 node=gpu001": exporter_text("c7a9", "m1")})

    question = site.questions["10.0.0.1:9400"]
    assert question.problem == 'is configured as "gpu001", which is not a node of any scheduler'
    assert question.proposed == "gpu01"


def test_former_name_is_dropped_when_an_exporter_restarts_in_a_container() -> None:
    site = Site()
    site.scrape({"10.0.0.5:9400": exporter_text("424773df46e0", "m1")})
    site.scrape({"10.0.0.5:9400": exporter_text("99aa00bb11cc", "m1")})

    assert site.counted == {"99aa00bb11cc": 2}


def test_gpu_counts_where_it_is_now_when_its_former_place_is_silent() -> None:
    site = Site()
    site.schedule()
    both = {"gpu01:9400": exporter_text("gpu01", "m1"), "gpu02:9400": exporter_text("gpu02", "m2")}
    site.scrape(both)
    moved = exporter_text("gpu02", "m2").replace("GPU-m2-1", "GPU-m1-1")
    site.scrape({**both, "gpu02:9400": moved})
    assert site.uuids("gpu01") == ["GPU-m1-0", "GPU-m1-1"]
    assert site.questions["gpu02:9400"].problem == "reports the same GPU as gpu01:1, as gpu02:1 (1 GPU counted once)"

    one_left = exporter_text("gpu01", "m1", 1)
    site.scrape({"gpu01:9400": one_left, "gpu02:9400": moved}, after_ms=MOVED_AFTER_MS + RESTATE_MS)

    whole(site)
    assert site.uuids("gpu01") == ["GPU-m1-0", None]
    assert site.uuids("gpu02") == ["GPU-m2-0", "GPU-m1-1"]
    assert site.questions == {}


def test_own_gpus_count_once_when_nvml_and_an_exporter_name_the_machine_differently() -> None:
    site = Site()
    site.schedule()
    site.scrape({"gpu01:9400": exporter_text("gpu01", "m1")})
    node = NodeId("head")
    for _ in range(2):
        site.ledger.apply_inventory(
            InventoryObserved(
                source="nvml",
                at=site.now,
                nodes=[Node(id=node, gpu_count=2)],
                units=[Unit(id=gpu_unit_id(node, i), node=node, index=i, uuid=f"GPU-m1-{i}") for i in range(2)],  # type: ignore[arg-type]
            )
        )

    whole(site)


def test_silent_exporter_has_its_node_when_only_its_address_is_known() -> None:
    matcher = ExporterMatcher()
    matcher.update_nodes(
        [Node(id=NodeId(name), gpu_count=2, partitions=("all",)) for name in SLURM], {NodeId("gpu01"): ["10.0.0.1"]}
    )
    matcher.set_previous({"10.0.0.2:9400": NodeId("gpu02")})
    for address in ("10.0.0.1:9400", "10.0.0.2:9400", "gpu03.site.org:9400", "10.0.0.9:9400"):
        matcher.add_target(address, None)
    matcher.settle()

    assert matcher.node_of_address("10.0.0.1:9400") == "gpu01"
    assert matcher.node_of_address("10.0.0.2:9400") == "gpu02"
    assert matcher.node_of_address("gpu03.site.org:9400") == "gpu03"
    assert matcher.node_of_address("10.0.0.9:9400") is None
    assert matcher.nodes_without_exporter() == []


def test_line_to_paste_is_one_string_of_toml_when_an_exporter_gives_a_hostile_name() -> None:
    import tomllib

    site = Site()
    site.schedule()
    parser = ExpositionParser("prometheus")
    hostile = 'x\\"]\\n[server]\\nhost = \\"0.0.0.0'
    text = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-h",Hostname="{hostile}"}} 1\n'
    site.normalizer.normalize([parser.parse(text.encode(), fetched_at=site.now)], now_ms=site.now)

    (question,) = site.questions.values()
    assert list(tomllib.loads(f"[collect.node_names]\n{question.setting}")) == ["collect"]
