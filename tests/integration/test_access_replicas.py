"""Two servers over one PostgreSQL act as one for users: sessions, tokens and the audit log are in the store."""

from pathlib import Path

import httpx2
import pytest
from servers.own_server import own_server
from servers.postgres import postgres_server

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, Role, Way
from clusterscape.serve.identity.passwords import hash_password
from clusterscape.settings import StorageSettings
from clusterscape.store.access import open_access_store

pytestmark = pytest.mark.server

PASSWORD = "correct horse battery staple"
CONFIG = """
[storage]
data_dir = "{folder}/data"
records = "{records}"
[auth]
modes = ["local"]
"""
FROM_PAGE = {"X-ClusterScape-Page": "1"}


def test_a_session_is_good_and_ends_everywhere_when_two_servers_share_a_store(tmp_path: Path) -> None:
    with postgres_server() as postgres:
        records = postgres.new_database()
        store = open_access_store(StorageSettings(data_dir=tmp_path, records=records))
        account = Account(way=Way.LOCAL, login="ada", role=Role.ADMIN, created_at=UnixMs(1))
        store.add_account(account, password_hash=hash_password(PASSWORD))
        store.close()
        folders = [tmp_path / "one", tmp_path / "two"]
        for folder in folders:
            folder.mkdir()
        configs = [CONFIG.format(folder=folder, records=records) for folder in folders]
        with (
            own_server(folders[0], configs[0]) as first,
            own_server(folders[1], configs[1]) as second,
            httpx2.Client(timeout=60, headers=FROM_PAGE) as browser,
        ):
            signed = browser.post(f"{first}/api/v1/session", json={"login": "ada", "password": PASSWORD})
            assert signed.status_code == 204, signed.text
            assert browser.get(f"{second}/api/v1/cluster").status_code == 200
            created = browser.post(f"{second}/api/v1/tokens", json={"title": "script", "scopes": ["read"]}).json()
            bearer = {"Authorization": f"Bearer {created['secret']}"}
            assert httpx2.get(f"{first}/api/v1/cluster", headers=bearer, timeout=60).status_code == 200
            assert browser.delete(f"{first}/api/v1/tokens/{created['token']['key']}").status_code == 204
            assert httpx2.get(f"{second}/api/v1/cluster", headers=bearer, timeout=60).status_code == 401
            actions = [entry["action"] for entry in browser.get(f"{second}/api/v1/audit").json()["entries"]]
            assert actions[::-1] == ["sign_in", "token.create", "token.revoke", "token"]
            cookies = dict(browser.cookies)
            assert browser.delete(f"{second}/api/v1/sessions").status_code == 204
            browser.cookies.update(cookies)
            assert browser.get(f"{first}/api/v1/cluster").status_code == 401
