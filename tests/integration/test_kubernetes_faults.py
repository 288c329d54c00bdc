"""The Kubernetes collector when the API server fails, refuses, expires versions or sends garbage: on the stand-in."""

import base64
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from clusters.kubernetes_looking import clock, look, look_until, make_settings
from clusters.kubernetes_objects import RUNNING, definition, node, pod
from servers.kubernetes import StandIn, stand_in
from servers.kubernetes_api import Api
from servers.programs import free_port, need_program
from servers.reliability import note

from clusterscape.collect.kubernetes import KubernetesCollector
from clusterscape.collect.kubernetes import client as client_module
from clusterscape.collect.kubernetes import collector as collector_module
from clusterscape.model import WorkloadState
from clusterscape.settings import KubernetesSettings

pytestmark = pytest.mark.server


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as state:
        api = Api(state.url, "secret")
        api.create(node("gpu-1"))
        api.set_status(api.create(pod("train", gpus=8, nodeName="gpu-1")), RUNNING)
        yield state


@asynccontextmanager
async def collecting(settings: KubernetesSettings) -> AsyncIterator[KubernetesCollector]:
    collector = KubernetesCollector(settings, clock, first_retry_s=0.02)
    try:
        yield collector
    finally:
        await collector.close()


async def test_nothing_is_reported_of_the_cluster_when_no_server_listens() -> None:
    async with collecting(make_settings(f"http://127.0.0.1:{free_port()}")) as collector:
        observations = await look(collector)
        assert observations.inventory is None
        assert observations.queue is None
        assert "cannot connect to the API server" in observations.failing()["kubernetes API server"]
        (status,) = await collector.check()
        assert not status.is_ok


async def test_old_state_is_withheld_and_current_state_reported_when_the_server_restarts(tmp_path: Path) -> None:
    port = free_port()
    with stand_in(port=port) as state:
        Api(state.url, "secret").create(node("gpu-1"))
        collector = KubernetesCollector(make_settings(state.url), clock, first_retry_s=0.02)
        observations = await look(collector)
        assert list(observations.node_states) == ["gpu-1"]
    try:
        observations = await look_until(collector, lambda observations: observations.inventory is None)
        assert "kubernetes nodes" in observations.failing()
        assert observations.queue is None
        with stand_in(port=port, state=state):
            Api(state.url, "secret").create(node("gpu-2"))
            observations = await look_until(
                collector, lambda observations: not observations.failing() and len(observations.node_states) == 2
            )
            assert observations.queue is not None
            assert observations.queue.is_complete
    finally:
        await collector.close()
    note(
        "fault",
        what="the Kubernetes API restarts",
        promised="old state is not reported as new, current state is",
        measured="as promised",
    )


async def test_everything_is_listed_again_when_the_watch_version_has_expired(server: StandIn) -> None:
    async with collecting(make_settings(server.url)) as collector:
        await look(collector)
        server.bookmark_s = 1e9
        server.compact()
        server.break_streams()
        Api(server.url, "secret").create(node("gpu-2"))
        observations = await look_until(collector, lambda observations: "gpu-2" in observations.node_states)
        assert not observations.failing()
        listed = [request for request in server.requests if request.startswith("GET /api/v1/nodes?limit")]
        assert len(listed) >= 2


async def test_a_watch_goes_on_where_it_was_when_the_connection_breaks(server: StandIn) -> None:
    async with collecting(make_settings(server.url)) as collector:
        await look(collector)
        server.break_streams()
        Api(server.url, "secret").create(node("gpu-2"))
        await look_until(collector, lambda observations: "gpu-2" in observations.node_states)
        listed = [request for request in server.requests if request.startswith("GET /api/v1/nodes?limit")]
        assert len(listed) == 1


async def test_a_list_is_begun_again_when_its_next_page_has_expired(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_LIMIT", 1)
    api = Api(server.url, "secret")
    for number in range(2, 5):
        api.create(node(f"gpu-{number}"))
    original = client_module.KubernetesClient.get
    forgotten: list[str] = []

    async def forget_once(self: client_module.KubernetesClient, path: str, query: object = None) -> dict[str, object]:
        if "continue" in (query if isinstance(query, dict) else {}) and not forgotten:
            forgotten.append(path)
            server.compact()
        return await original(self, path, query)  # type: ignore[arg-type]

    monkeypatch.setattr(client_module.KubernetesClient, "get", forget_once)
    async with collecting(make_settings(server.url)) as collector:
        observations = await look_until(collector, lambda observations: len(observations.node_states) == 4)
        assert forgotten
        assert not observations.failing()


async def test_other_kinds_are_reported_when_one_kind_is_forbidden(server: StandIn) -> None:
    server.forbidden.add("jobs")
    async with collecting(make_settings(server.url)) as collector:
        observations = await look(collector)
        assert list(observations.failing()) == ["kubernetes owners"]
        assert 'cannot list resource "jobs"' in observations.failing()["kubernetes owners"]
        assert "ClusterRole" in (observations.statuses["kubernetes owners"].hint or "")
        assert observations.queue is not None
        assert observations.queue.is_complete  # it could never be read, so nothing shown before disappears
        assert "train" in observations.workloads


async def test_nothing_is_ended_when_a_kind_that_was_read_no_longer_answers(server: StandIn) -> None:
    async with collecting(make_settings(server.url)) as collector:
        await look(collector)
        server.garbage.add("jobs")
        server.break_streams()
        observations = await look_until(collector, lambda observations: "kubernetes owners" in observations.failing())
        assert "is not JSON" in observations.failing()["kubernetes owners"]
        assert observations.queue is not None
        assert not observations.queue.is_complete
        server.garbage.clear()
        observations = await look_until(collector, lambda observations: not observations.failing())
        assert observations.queue is not None
        assert observations.queue.is_complete


async def test_others_do_not_wait_when_one_kind_is_not_answered(server: StandIn) -> None:
    server.silent.add("replicasets")
    async with collecting(make_settings(server.url, timeout_s=0.3)) as collector:
        observations = await look_until(collector, lambda observations: observations.queue is not None)
        assert list(observations.failing()) == ["kubernetes owners"]
        assert "train" in observations.workloads


async def test_a_kind_is_read_when_it_is_installed_while_running(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector_module, "DISCOVER_EVERY_MS", 0)
    async with collecting(make_settings(server.url)) as collector:
        observations = await look(collector)
        assert "kubernetes kueue" not in observations.statuses  # not installed is no fault
        api = Api(server.url, "secret")
        api.install([definition("kueue.x-k8s.io", "v1beta1", "clusterqueues", "ClusterQueue", namespaced=False)])
        observations = await look(collector)
        assert observations.statuses["kubernetes kueue"].is_ok


async def test_a_deleted_workload_was_cancelled_when_it_had_not_ended(server: StandIn) -> None:
    async with collecting(make_settings(server.url)) as collector:
        assert (await look(collector)).workloads["train"].state is WorkloadState.RUNNING
        Api(server.url, "secret").delete(pod("train"))
        observations = await look_until(
            collector, lambda observations: observations.workloads["train"].state is not WorkloadState.RUNNING
        )
        workload = observations.workloads["train"]
        assert (workload.state, workload.tags["exit_reason"]) == (WorkloadState.CANCELLED, "Deleted")
        assert workload.ended_at is not None
        assert not (await look(collector)).workloads


async def test_the_token_is_named_when_the_server_does_not_take_it(server: StandIn) -> None:
    async with collecting(make_settings(server.url, token="wrong")) as collector:
        observations = await look(collector)
        assert "401" in observations.failing()["kubernetes API server"]
        assert "wrong" not in str(observations.statuses)


async def test_clock_skew_is_reported_when_the_servers_clock_is_off(server: StandIn) -> None:
    server.clock_ahead_s = 600.0
    async with collecting(make_settings(server.url)) as collector:
        observations = await look(collector)
        assert list(observations.failing()) == ["kubernetes clock"]
        assert "s ahead of" in observations.failing()["kubernetes clock"]
        assert "train" in observations.workloads
    note(
        "fault",
        what="the Kubernetes server's clock is off",
        promised="the skew is reported",
        measured="reported",
    )


def make_certificate(folder: Path, name: str, *, authority: str | None = None) -> None:
    """name.key and name.crt, signed by ``authority`` or by itself."""
    openssl = need_program("openssl", "openssl")
    names = folder / "names.txt"
    names.write_text("subjectAltName=IP:127.0.0.1\n")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    new = ("-subj", f"/CN={name}", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key")
    if authority is None:
        run("req", "-x509", "-days", "2", *new, "-out", f"{name}.crt")
        return
    run("req", *new, "-out", f"{name}.csr")
    signer = ("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial")
    run("x509", "-req", "-days", "2", "-in", f"{name}.csr", *signer, "-extfile", "names.txt", "-out", f"{name}.crt")


async def test_a_client_certificate_is_shown_when_the_kubeconfig_has_one(tmp_path: Path) -> None:
    make_certificate(tmp_path, "ca")
    make_certificate(tmp_path, "server", authority="ca")
    make_certificate(tmp_path, "clusterscape", authority="ca")
    pem = tmp_path / "server.pem"
    pem.write_bytes((tmp_path / "server.crt").read_bytes() + (tmp_path / "server.key").read_bytes())

    def inline(name: str) -> str:
        return base64.b64encode((tmp_path / name).read_bytes()).decode()

    with stand_in(certificate=pem, client_authority=tmp_path / "ca.crt") as state:
        user = {"client-certificate-data": inline("clusterscape.crt"), "client-key": "clusterscape.key"}
        config = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": state.url, "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": user}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        settings = KubernetesSettings(mode="kubeconfig", kubeconfig=tmp_path / "config")
        async with collecting(settings) as collector:
            observations = await look(collector)
            assert not observations.failing()
