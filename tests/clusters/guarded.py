"""A small cluster behind a gate: its app, its store of access, an adjustable clock, and accounts to sign in with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from argon2 import PasswordHasher
from fastapi import FastAPI
from fastapi.testclient import TestClient

from clusters.opened import open_services
from clusters.small import NOW, SmallCluster
from clusterscape.model import UnixMs
from clusterscape.model.access import Account, AuditEntry, Role, Scope, Way
from clusterscape.serve.app import create_app
from clusterscape.serve.identity import passwords
from clusterscape.serve.identity.identity import Identity
from clusterscape.settings import AuthSettings, StorageSettings
from clusterscape.settings.limits import ItemLimits
from clusterscape.store.access import AuditFilter, open_access_store

PASSWORD = "correct horse battery staple"
FROM_PAGE = {"X-ClusterScape-Page": "1"}


@dataclass
class GuardedSite:
    """The app and its stores."""

    cluster: SmallCluster
    identity: Identity
    static: Path

    @cached_property
    def app(self) -> FastAPI:
        """One for all clients."""
        queries = self.cluster.queries
        return create_app(queries, services=open_services(queries), identity=self.identity, static=self.static)

    def client(self, base_url: str = "http://testserver", *, address: str = "192.0.2.7") -> TestClient:
        """A browser, or a script, of its own."""
        return TestClient(self.app, base_url=base_url, client=(address, 50000), follow_redirects=False)

    def add_account(self, login: str, role: Role, *, way: Way = Way.LOCAL, projects: tuple[str, ...] = ()) -> Account:
        """Creates an account whose password is PASSWORD."""
        account = Account(way=way, login=login, role=role, projects=frozenset(projects), created_at=self.cluster.now)
        hashed = passwords.hash_password(PASSWORD) if way is Way.LOCAL else None
        assert self.identity.store.add_account(account, password_hash=hashed)
        return account

    def make_token(self, account: Account, *scopes: Scope, days: float = 1) -> str:
        """The secret of a new API token."""
        return self.identity.tokens.create(account, title="a script", scopes=scopes, days=days)[1]

    def pass_time(self, hours: float) -> None:
        """Move the clock forward."""
        self.cluster.now = UnixMs(int(self.cluster.now + hours * 3_600_000))

    def audited(self, **where: Any) -> list[AuditEntry]:
        """Entries of the audit log, oldest first."""
        return self.identity.store.audit(AuditFilter(**where))[::-1]


@contextmanager
def guarded_site(
    cluster: SmallCluster, folder: Path, *, token: str | None = None, limits: ItemLimits | None = None, **auth: Any
) -> Iterator[GuardedSite]:
    """A site with these settings of auth. Its passwords cost next to nothing: tests sign in often."""
    static = folder / "static"
    static.mkdir(exist_ok=True)
    (static / "index.html").write_text("<title>ClusterScape</title>")
    store = open_access_store(StorageSettings(data_dir=folder / "access"))
    identity = Identity(store, AuthSettings(**auth), static_token=token, clock=lambda: cluster.now, limits=limits)
    cluster.now = NOW
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    try:
        with patch.object(passwords, "_HASHER", cheap):
            passwords._dummy_hash.cache_clear()
            yield GuardedSite(cluster, identity, static)
    finally:
        passwords._dummy_hash.cache_clear()
        identity.close()


def sign_in(client: TestClient, login: str, password: str = PASSWORD) -> None:
    """Sign in on the page."""
    answer = client.post("/api/v1/session", json={"login": login, "password": password}, headers=FROM_PAGE)
    assert answer.status_code == 204, answer.text
