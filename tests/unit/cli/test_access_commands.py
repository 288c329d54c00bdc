"""``clusterscape user``, ``token`` and ``audit``: accounts without a running server, and no secret in the output."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from clusterscape.cli.checks import check_everything
from clusterscape.cli.entry import app
from clusterscape.errors import NotFoundError, QueryError
from clusterscape.model.access import Way
from clusterscape.settings import StorageSettings, read_settings
from clusterscape.store.access import AuditFilter, open_access_store

PASSWORD = "correct horse battery staple"


class Command:
    """The command on its own site; keeps all of its output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "clusterscape.toml"
        self.config.write_text(f'[storage]\ndata_dir = "{folder}/data"\n[auth]\nmodes = ["local"]\n')
        self.output = ""

    def run(self, *words: str, typed: str | None = None) -> Result:
        result = CliRunner().invoke(app, [*words, "--config", str(self.config)], input=typed)
        self.output += result.output
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def read(self, *words: str, typed: str | None = None) -> Any:
        return json.loads(self.run(*words, "--json", typed=typed).stdout)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_accounts_are_created_changed_and_removed_when_requested(command: Command) -> None:
    typed = f"{PASSWORD}\n"
    command.run("user", "add", "ada", "--role", "lead", "--project", "nlp", "--password-stdin", typed=typed)
    with pytest.raises(QueryError, match="already"):
        command.run("user", "add", "ada", "--password-stdin", typed=typed)
    with pytest.raises(QueryError, match="too short"):
        command.run("user", "passwd", "ada", "--password-stdin", typed="short\n")
    with pytest.raises(QueryError, match="cannot prompt for a password"):
        command.run("user", "add", "bob")
    (listed,) = command.read("user", "list")
    assert (listed["login"], listed["role"], listed["projects"]) == ("ada", "lead", ["nlp"])
    command.run("user", "role", "ada", "admin")
    (listed,) = command.read("user", "list")
    assert (listed["role"], listed["projects"]) == ("admin", ["nlp"])
    command.run("user", "remove", "ada")
    with pytest.raises(NotFoundError):
        command.run("user", "remove", "ada")
    noted = command.read("audit", "--action", "account")
    assert [entry["action"] for entry in noted] == ["account.add", "account.change", "account.remove"]
    assert {entry["way"] for entry in noted} == {"command"}
    assert "account.add" in command.run("audit").stdout


def test_token_is_shown_once_and_revoked_when_requested(command: Command) -> None:
    command.run("user", "add", "ada", "--role", "researcher", "--password-stdin", typed=f"{PASSWORD}\n")
    token = command.read("token", "create", "ada", "--scope", "runs", "--days", "7", "--title", "tracker")
    secret = token.pop("secret")
    assert secret.startswith(token["start"])
    assert command.read("token", "list") == [token]
    with pytest.raises(QueryError, match="requires the role admin"):
        command.run("token", "create", "ada", "--scope", "admin")
    command.run("token", "revoke", token["key"])
    with pytest.raises(NotFoundError):
        command.run("token", "revoke", token["key"])
    assert "revoked" in command.run("token", "list").stdout
    assert command.output.count(secret) == 1
    kept = b"".join(path.read_bytes() for path in (command.folder / "data").iterdir() if path.is_file())
    assert secret.encode() not in kept
    assert PASSWORD not in command.output


def test_doctor_reports_sign_in_methods_and_no_secret_when_run(tmp_path: Path) -> None:
    secrets = {"token": "the-token-of-the-server", "client": "the-secret-of-the-client", "metrics": "metrics-token-x"}
    settings = read_settings(
        environ={},
        overrides={
            "storage": {"data_dir": tmp_path},
            "server": {"host": "0.0.0.0", "token": secrets["token"]},
            "collect": {"prometheus": {"url": "http://127.0.0.1:9", "token": secrets["metrics"]}},
            "auth": {
                "modes": ["local", "oidc"],
                "oidc": {"issuer": "http://127.0.0.1:9", "client_id": "x", "client_secret": secrets["client"]},
            },
        },
    )
    checks = {check.what: check for check in check_everything(settings, None)}
    assert checks["address"].message.endswith("sign-in by local or oidc or token")
    assert checks["local accounts"].is_ok
    assert not checks["sign-in by oidc"].is_ok
    assert "does not respond" in checks["sign-in by oidc"].message
    everything = repr(checks) + repr(settings)
    assert [name for name, secret in secrets.items() if secret in everything] == []


def test_audit_log_is_of_the_same_store_as_the_server_when_the_command_writes(command: Command) -> None:
    command.run("user", "add", "ada", "--password-stdin", typed=f"{PASSWORD}\n")
    store = open_access_store(StorageSettings(data_dir=command.folder / "data"))
    assert store.account(Way.LOCAL, "ada") is not None
    assert [entry.target for entry in store.audit(AuditFilter())] == ["ada"]
    store.close()
