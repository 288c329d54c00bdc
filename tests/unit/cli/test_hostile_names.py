"""Untrusted names on a terminal: no control sequence takes effect, no text is lost."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters.small import HOUR_MS, NOW, SmallCluster, small_cluster
from hypothesis import given
from hypothesis import strategies as st
from servers.in_thread import served_in_thread
from typer.testing import CliRunner

from clusterscape.cli import output
from clusterscape.cli.entry import app
from clusterscape.cli.output import ConsoleLog, JsonLog, SafeConsole, listing_table, styled_line
from clusterscape.cli.safe_text import one_line, safe_json
from clusterscape.model import Node, NodeId, Partition, SourceStatus, UnixMs, Workload, WorkloadId, WorkloadState
from clusterscape.model.access import Account, AuditEntry, Outcome, Role, Way
from clusterscape.settings import StorageSettings
from clusterscape.store.access import open_access_store

__all__ = ["small_cluster"]

HOSTILE = (
    "[bold]x[/bold]",
    "[link=http://e]y[/link]",
    "[/]",
    ":bug:",
    "\x1b]52;c;ZWNobw==\x07",
    "\x1b[2J\x1b[31m",
    "\x9b1;1H",
    "a\nslurm:9 root",
    "b\rfree",
    "c\x08\x08d",
    "nul\x00end",
    "\u202egpj.exe",
    "\u2066iso\u2069",
    "e\u2028f",
    "del\x7f",
    "tab\tbed",
)
SHOWN = tuple(name for name in HOSTILE if "\x00" not in name)  # stores keep no NUL
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def url(small_cluster: SmallCluster) -> Iterator[str]:
    records = small_cluster.records
    jobs = [
        Workload(
            id=WorkloadId(f"slurm:{90 + place}"),
            state=WorkloadState.WAITING,
            name=name,
            user=name,
            project=name,
            partition=HOSTILE[0],
            gpus_requested=1,
            time_limit_s=3600,
            submitted_at=UnixMs(NOW - HOUR_MS),
            pending_reason=name,
        )
        for place, name in enumerate(HOSTILE)
    ]
    records.write_workloads(jobs, at_ms=NOW)
    nodes = [Node(id=NodeId(name), partitions=HOSTILE, reason=name, rack=name, gpu_count=1) for name in HOSTILE]
    parts = [Partition(name=name, nodes=tuple(node.id for node in nodes)) for name in HOSTILE]
    records.write_inventory(nodes=nodes, partitions=parts, units=[], at_ms=NOW)
    records.write_sources(
        [SourceStatus(source=name, kind="dcgm", is_ok=False, at=NOW, message=name, hint=name) for name in HOSTILE]
    )
    with served_in_thread(small_cluster.queries) as url:
        yield url


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A site whose accounts have such names, with an exporter that cannot be reached."""
    path = tmp_path / "clusterscape.toml"
    path.write_text(f'[storage]\ndata_dir = "{tmp_path}/own"\n[collect.dcgm]\ntargets = ["127.0.0.1:9"]\n')
    store = open_access_store(StorageSettings(data_dir=tmp_path / "own"))
    for name in HOSTILE:
        store.add_account(Account(way=Way.LOCAL, login=name, role=Role.VIEWER, title=name, created_at=NOW))
        store.append_audit(
            AuditEntry(
                at=NOW, action="x", outcome=Outcome.DONE, actor=name, way="local", address=None, target=name, details={}
            )
        )
    store.close()
    return path


def listed(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 1), done.exception
    return done.stdout


COMMANDS = (
    ["status"],
    ["list", "workloads"],
    ["list", "nodes"],
    ["list", "units"],
    ["list", "sources"],
    ["sched", "queue"],
    ["sched", "why", "slurm:91"],
    ["diagnose", "slurm:1"],
    ["rules", "list"],
    ["rules", "mutes"],
    ["violations"],
)


def test_listings_of_a_server_show_every_name_as_plain_text_when_names_are_hostile(url: str) -> None:
    for words in COMMANDS:
        output = listed(*words, "--url", url)
        assert output.strip(), words
        assert UNSAFE.findall(output) == [], words
    for resource in ("workloads", "nodes", "sources"):
        lines = listed("list", resource, "--url", url).splitlines()
        for name in SHOWN:
            assert any(one_line(name) in line for line in lines), (resource, name)
        if resource == "workloads":
            assert len(lines) == 1 + 3 + len(HOSTILE)  # a heading, the small cluster's workloads, and one for each name
    output = listed("list", "workloads", "--json", "--url", url)
    assert UNSAFE.findall(output) == []
    assert set(SHOWN) <= {workload["name"] for workload in json.loads(output)["workloads"]}


def test_listings_of_accounts_show_every_name_as_plain_text_when_names_are_hostile(config: Path) -> None:
    for words in (["user", "list"], ["audit"], ["doctor"], ["token", "list"]):
        output = listed(*words, "--config", str(config))
        assert UNSAFE.findall(output) == [], words
        if words[0] in ("user", "audit"):
            assert all(one_line(name) in output for name in SHOWN)


@given(st.text())
def test_json_means_the_same_when_control_characters_are_escaped(text: str) -> None:
    document = safe_json(json.dumps({"name": text, text: [text]}, ensure_ascii=False))
    assert json.loads(document) == {"name": text, text: [text]}
    assert UNSAFE.findall(document) == []


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b\n\r[]/:\u202e")), st.booleans())
def test_terminal_gets_only_our_own_styles_when_any_text_is_printed(text: str, is_terminal: bool) -> None:
    file = io.StringIO()
    console = SafeConsole(file=file, width=500, force_terminal=is_terminal, legacy_windows=False)
    table = listing_table()
    table.add_column("a")
    table.add_row(text)
    for renderable in (text, styled_line((text, "bold"), text), table):
        console.print(renderable)
    output = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()) if is_terminal else file.getvalue()
    assert UNSAFE.findall(output) == []
    if len(text) < 20:
        assert output.count("\n") == 4  # one line per name, and the heading of the table
        assert one_line(text).strip() in output


@pytest.mark.parametrize("name", HOSTILE)
def test_log_record_is_one_line_of_plain_text_when_a_name_holds_more(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    monkeypatch.setattr(output, "stderr", SafeConsole(file=file, width=500))
    monkeypatch.setattr(sys, "stderr", file)
    record = logging.LogRecord("x", logging.WARNING, "", 0, "source %s failed", (name,), None)
    ConsoleLog().emit(record)
    assert file.getvalue().endswith(f" source {one_line(name)} failed\n")
    JsonLog().emit(record)
    first, second = file.getvalue().splitlines()
    assert UNSAFE.findall(first + second) == []
    assert json.loads(second)["message"] == f"source {name} failed"


def test_traceback_cannot_pass_for_a_log_line_when_its_message_has_newlines(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(output, "stderr", SafeConsole(file=file, width=500))
    try:
        raise ValueError("no\n12:00:00 all is well\x1b[2J")
    except ValueError:
        ConsoleLog().emit(logging.LogRecord("x", logging.ERROR, "", 0, "failed", (), sys.exc_info()))
    head, *rest = file.getvalue().splitlines()
    assert head.endswith("failed")
    assert all(line.startswith("  ") for line in rest)
    assert UNSAFE.findall(file.getvalue()) == []
