import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterscape.collect.kubernetes.access import open_access
from clusterscape.errors import SourceError
from clusterscape.settings import KubernetesSettings

Json = dict[str, Any]


def write_config(folder: Path, user: Json, **cluster: Any) -> KubernetesSettings:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "lost", "context": {"cluster": "gone", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:8080/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    return KubernetesSettings(mode="kubeconfig", kubeconfig=folder / "config")


async def test_current_context_is_used_when_none_is_named(tmp_path: Path) -> None:
    access = open_access(write_config(tmp_path, {"token": "abc"}))
    assert (access.url, access.tls, await access.token.get()) == ("http://127.0.0.1:8080", None, "abc")


async def test_a_token_file_is_read_again_when_the_server_rejects_the_old_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old\n")
    access = open_access(write_config(tmp_path, {"tokenFile": "token"}))
    assert await access.token.get() == "old"
    (tmp_path / "token").write_text("new\n")
    assert await access.token.get() == "old"
    access.token.reject()
    assert await access.token.get() == "new"


async def test_a_simple_login_program_is_run_when_the_kubeconfig_names_one(tmp_path: Path) -> None:
    program = tmp_path / "login"
    program.write_text(
        '#!/bin/sh\necho "$1 $WHO" >> "$0.log"\n'
        'echo \'{"kind": "ExecCredential", "status": {"token": "t", "expirationTimestamp": "2000-01-01T00:00:00Z"}}\'\n'
    )
    program.chmod(0o755)
    entry = {"command": "./login", "args": ["token"], "env": [{"name": "WHO", "value": "me"}]}
    access = open_access(write_config(tmp_path, {"exec": entry}))
    assert await access.token.get() == "t"
    assert await access.token.get() == "t"
    assert (tmp_path / "login.log").read_text() == "token me\n" * 2  # expired credentials are requested again


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 3", "printed no token"), ("echo no >&2; exit 1", "no"), ("echo {}", "printed no token")],
)
async def test_output_of_a_login_program_is_reported_when_it_fails(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "login"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    access = open_access(write_config(tmp_path, {"exec": {"command": "./login", "installHint": "Install it."}}))
    with pytest.raises(SourceError, match=words) as caught:
        await access.token.get()
    assert caught.value.hint == "Install it."


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({"exec": {"command": "x", "interactiveMode": "Always"}}, {}, "is interactive"),
        ({"auth-provider": {"name": "oidc"}}, {}, "not supported"),
        ({"username": "u", "password": "hunter2"}, {}, "not supported"),
        ({"client-certificate-data": "%%%"}, {}, "not base64"),
        ({}, {"server": "ftp://x"}, "is not a URL"),
        ({}, {"proxy-url": "socks5://x"}, "proxy-url"),
        ({}, {"server": "https://127.0.0.1:1", "certificate-authority": "missing.crt"}, "cannot read"),
        ({}, {"server": "https://127.0.0.1:1", "certificate-authority-data": "bm90IGEgY2VydA=="}, "is not PEM"),
    ],
)
def test_unsupported_setting_is_refused_when_the_kubeconfig_uses_it(
    tmp_path: Path, user: Json, cluster: Json, words: str
) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        open_access(write_config(tmp_path, user, **cluster))
    assert caught.value.hint
    assert "hunter2" not in caught.value.message


def test_existing_contexts_are_named_when_a_context_is_unknown(tmp_path: Path) -> None:
    settings = write_config(tmp_path, {})
    with pytest.raises(SourceError, match="no entry 'other' among its contexts") as caught:
        open_access(settings.model_copy(update={"context": "other"}))
    assert "here, lost" in (caught.value.hint or "")
    with pytest.raises(SourceError, match="no entry 'gone' among its clusters"):
        open_access(settings.model_copy(update={"context": "lost"}))


def test_a_broken_file_is_named_when_it_is_not_yaml(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a: [")
    with pytest.raises(SourceError, match="is not YAML"):
        open_access(KubernetesSettings(mode="kubeconfig", kubeconfig=tmp_path / "config"))


async def test_service_account_is_used_when_running_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = KubernetesSettings(mode="in_cluster")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SourceError, match="not running in a pod with a service account"):
        open_access(settings, service_account=tmp_path)
    (tmp_path / "token").write_text("abc")
    (tmp_path / "ca.crt").write_bytes(_some_certificate())
    monkeypatch.setitem(os.environ, "KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setitem(os.environ, "KUBERNETES_SERVICE_PORT", "443")
    access = open_access(settings, service_account=tmp_path)
    assert (access.url, await access.token.get()) == ("https://[fd00::1]:443", "abc")
    assert access.tls is not None


def _some_certificate() -> bytes:
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if not bundle.is_file():
        pytest.skip("no certificates on this machine; `apt-get install ca-certificates` brings them")
    text = bundle.read_text()
    return text[: text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----\n")].encode()
