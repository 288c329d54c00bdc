"""Deployment files are accepted by their tools: systemd, hadolint, the schemas of Kubernetes, Prometheus."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml
from servers.programs import free_port, need_program

from clusterscape.runtime.replicas import check_roles
from clusterscape.settings import read_settings
from clusterscape.settings.reading import SITE_CONFIG

DEPLOY = Path(__file__).parents[2] / "deploy"
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.server


def test_systemd_accepts_the_unit_when_it_verifies_it(tmp_path: Path) -> None:
    program = need_program("systemd-analyze", "systemd")
    text = (DEPLOY / "systemd/clusterscape.service").read_text()
    unit = tmp_path / "clusterscape.service"
    unit.write_text(text.replace("/opt/clusterscape/bin/clusterscape", sys.executable))  # it must exist to be accepted
    done = subprocess.run(
        [program, "verify", "--man=no", "--recursive-errors=no", unit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert unit.name not in done.stderr


def test_unit_and_commands_use_one_settings_file_and_folder_when_installed_as_the_readme_says(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", (DEPLOY / "README.md").read_text(), re.DOTALL)
    lines = [shlex.split(line) for line in block.splitlines()]
    unit = (DEPLOY / "systemd/clusterscape.service").read_text()
    state = f"/var/lib/{re.findall('^StateDirectory=(.+)$', unit, re.MULTILINE)[0]}"
    (started,) = re.findall("^ExecStart=(.+)$", unit, re.MULTILINE)
    assert {"UMask=0077", "StateDirectoryMode=0700"} <= set(unit.splitlines())
    assert "DATA_DIR" not in unit.replace("storage.data_dir", "")

    (install,) = (words for words in lines if "pip" in words[0])
    assert install[-1].startswith(".")  # installs this checkout: no index has a release
    assert started.split()[0] == f"{Path(install[0]).parent}/clusterscape"
    (init,) = (words for words in lines if words[:2] == ["clusterscape", "init"])
    file = tmp_path / "clusterscape.toml"
    assert init[init.index("--config") + 1] == started.split()[-1] == str(SITE_CONFIG)
    words = [str(file) if word == str(SITE_CONFIG) else word for word in init[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "clusterscape.cli", *words, "--yes"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(read_settings(file, environ={}).storage.data_dir) == state
    assert f"install -d -o clusterscape -g clusterscape -m 0700 {state}" in block
    assert "sudo -u clusterscape clusterscape doctor" in block


def test_hadolint_accepts_the_containerfile() -> None:
    done = subprocess.run(
        [BIN / "hadolint", DEPLOY / "container/Containerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("clusterscape.yaml", {"Deployment", "Service", "ConfigMap", "PersistentVolumeClaim"}),
        ("replicas.yaml", {"Deployment", "StatefulSet", "Service", "ConfigMap"}),
    ],
)
def test_manifests_follow_the_schemas_of_kubernetes_when_validated_strictly(name: str, kinds: set[str]) -> None:
    import kubernetes_validate

    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))
    assert {document["kind"] for document in documents} >= kinds
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", ["clusterscape.yaml", "replicas.yaml"])
def test_settings_in_the_manifest_are_known_when_read_as_a_site_would(tmp_path: Path, name: str) -> None:
    (config,) = (
        document
        for document in yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())
        if document["kind"] == "ConfigMap"
    )
    file = tmp_path / "clusterscape.toml"
    file.write_text(config["data"]["clusterscape.toml"])
    unit = (DEPLOY / "systemd/clusterscape.service").read_text()
    image = (DEPLOY / "container/Containerfile").read_text()
    environ = dict(re.findall(r"^[^#]*?(CLUSTERSCAPE_\w+)=(\S+)", unit + image, re.MULTILINE))
    settings = read_settings(file, environ={**environ, "CLUSTERSCAPE_STORAGE__RECORDS": "postgresql://db/clusterscape"})
    assert settings.log.format == "json"
    if name == "replicas.yaml":
        for role in ("web", "collector"):
            server = settings.server.model_copy(update={"role": role})
            check_roles(settings.model_copy(update={"server": server}))


def test_dashboard_metrics_are_exported_and_logs_are_json_when_a_server_runs(tmp_path: Path) -> None:
    port = free_port()
    environ = {
        **os.environ,
        "CLUSTERSCAPE_STORAGE__DATA_DIR": str(tmp_path),
        "CLUSTERSCAPE_LOG__FORMAT": "json",
        "CLUSTERSCAPE_COLLECT__DCGM__TARGETS": f"127.0.0.1:{free_port()}",  # no server there: something to log
        "CLUSTERSCAPE_COLLECT__DCGM__INTERVAL_S": "0.5",
    }
    command = [sys.executable, "-m", "clusterscape.cli", "serve", "--port", str(port), "--json"]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        while (line := server.stdout.readline()) and line.rstrip() != "}":
            pass
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/cluster", timeout=10) as answer:
            answer.read()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            exported = set(re.findall(r"^# TYPE (clusterscape_\w+)", answer.read().decode(), re.MULTILINE))
    finally:
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=30)
    assert server.returncode == 0, log
    for line in log.splitlines():
        assert {"at", "level", "logger", "message"} <= json.loads(line).keys()

    dashboard = json.loads((DEPLOY / "grafana/clusterscape.json").read_text())
    queried = {
        re.sub(r"_(total|bucket|count|sum)$", "", name)
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"clusterscape_\w+", target["expr"])
    }
    # An empty site has no sample whose age could be reported.
    assert queried - {"clusterscape_scrape_lag_seconds"} <= {re.sub(r"_total$", "", name) for name in exported}
