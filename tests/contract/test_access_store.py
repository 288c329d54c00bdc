"""Contract of the access store on SQLite and PostgreSQL; two servers over one store act as one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from servers.postgres import PostgresServer, postgres_server
from sqlalchemy import delete, text, update

from clusterscape.errors import StoreError
from clusterscape.model import UnixMs
from clusterscape.model.access import Account, ApiToken, AuditEntry, Outcome, Role, Scope, Session, Way
from clusterscape.settings import StorageSettings
from clusterscape.store.access import AccessStore, AuditFilter, open_access_store
from clusterscape.store.records.engines import database_errors
from clusterscape.store.records.tables import audit

T0 = UnixMs(1_790_000_000_000)
DAY_MS = 86_400_000

Open = Callable[[], AccessStore]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same, at first empty, store again and again, as several servers would."""
    is_postgres = request.param == "postgresql"
    records = request.getfixturevalue("postgres").new_database() if is_postgres else "sqlite"
    opened: list[AccessStore] = []

    def open_one() -> AccessStore:
        opened.append(open_access_store(StorageSettings(data_dir=tmp_path, records=records)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def account(login: str = "ada", **changes: object) -> Account:
    base = Account(way=Way.LOCAL, login=login, role=Role.LEAD, projects=frozenset({"nlp", "vision"}), created_at=T0)
    return replace(base, **changes)  # type: ignore[arg-type]


def session(digest: str, login: str | None = "ada", **changes: object) -> Session:
    base = Session(
        digest=digest,
        way=Way.LOCAL,
        login=login,
        created_at=T0,
        seen_at=T0,
        expires_at=UnixMs(T0 + DAY_MS),
        address="192.0.2.1",
        agent="a browser",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def token(key: str, **changes: object) -> ApiToken:
    base = ApiToken(
        key=key,
        start="cst_abcd",
        title="nightly",
        way=Way.LOCAL,
        login="ada",
        scopes=frozenset({Scope.READ, Scope.RUNS}),
        created_at=T0,
        expires_at=UnixMs(T0 + DAY_MS),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def entry(action: str, **changes: object) -> AuditEntry:
    base = AuditEntry(at=T0, action=action, outcome=Outcome.DONE, actor="ada", way="local", address="192.0.2.1")
    return replace(base, **changes)  # type: ignore[arg-type]


def test_accounts_come_back_as_they_were_when_written(open_store: Open) -> None:
    store = open_store()
    named = account("ada", title="Ada Ünïcode", subject="s-1", signed_in_at=T0, is_disabled=True)
    assert store.add_account(named, password_hash="$argon2id$x")
    assert not store.add_account(account("ada", role=Role.ADMIN)), "the first one stays"
    assert store.account(Way.LOCAL, "ada") == named
    assert store.account(Way.OIDC, "ada") is None, "a login is one person's within one way only"
    store.write_account(account("ada", way=Way.OIDC))
    assert store.password_hash("ada") == "$argon2id$x"
    assert store.change_account(replace(named, role=Role.VIEWER, is_disabled=False))
    assert store.password_hash("ada") == "$argon2id$x"
    assert not store.change_account(account("nobody"))
    assert store.set_password("ada", "$argon2id$y")
    assert not store.set_password("nobody", "$argon2id$y")
    assert [kept.way for kept in open_store().accounts()] == [Way.LOCAL, Way.OIDC]
    assert open_store().password_hash("ada") == "$argon2id$y"


def test_session_is_valid_on_both_servers_when_they_share_a_store(open_store: Open) -> None:
    store, other = open_store(), open_store()
    store.add_account(account())
    store.add_session(session("d1"))
    store.add_session(session("d2"))
    store.add_session(session("d3", None, way=Way.STATIC, seal="sealed"))
    assert other.session("d1") == (session("d1"), account())
    assert other.session("d3") == (session("d3", None, way=Way.STATIC, seal="sealed"), None)
    other.touch_session("d1", UnixMs(T0 + 5))
    row = store.session("d1")
    assert row is not None
    assert row[0].seen_at == T0 + 5
    store.change_account(account(role=Role.VIEWER))
    row = other.session("d1")
    assert row is not None
    assert row[1] is not None
    assert row[1].role is Role.VIEWER
    assert other.end_sessions(Way.LOCAL, "ada") == 2
    assert store.session("d1") is None
    assert other.end_sessions(Way.STATIC, None) == 1


def test_tokens_are_found_by_digest_and_go_with_their_owner_when_kept(open_store: Open) -> None:
    store = open_store()
    store.add_account(account())
    store.add_token(token("k1"), digest="h1")
    store.add_token(token("k2", created_at=UnixMs(T0 + 1), login="bob"), digest="h2")
    assert store.find_token("h1") == (token("k1"), account())
    assert store.find_token("h2") == (token("k2", created_at=UnixMs(T0 + 1), login="bob"), None)
    assert store.find_token("h3") is None
    assert [kept.key for kept in store.tokens()] == ["k2", "k1"]
    assert [kept.key for kept in store.tokens(Way.LOCAL, "ada")] == ["k1"]
    store.touch_token("k1", UnixMs(T0 + 9))
    assert store.revoke_token("k1", UnixMs(T0 + 10))
    assert not store.revoke_token("k1", UnixMs(T0 + 11)), "once is enough"
    assert store.token("k1") == token("k1", used_at=UnixMs(T0 + 9), revoked_at=UnixMs(T0 + 10))
    with pytest.raises(StoreError):
        store.add_token(token("k9"), digest="h1")
    store.add_session(session("d1"))
    assert store.remove_account(Way.LOCAL, "ada")
    assert not store.remove_account(Way.LOCAL, "ada")
    assert store.token("k1") is None
    assert store.session("d1") is None


def test_audit_log_lists_newest_first_when_read(open_store: Open) -> None:
    store, other = open_store(), open_store()
    for number in range(4):
        (store if number % 2 else other).append_audit(entry("rule.save", at=UnixMs(T0 + number), target=str(number)))
    store.append_audit(entry("rules", at=UnixMs(T0 + 4), actor=None, way=None, address=None, details={"why": "100% _"}))
    entries = store.audit(AuditFilter())
    assert [row.target for row in entries] == [None, "3", "2", "1", "0"]
    assert replace(entries[0], key=None) == entry(
        "rules", at=UnixMs(T0 + 4), actor=None, way=None, address=None, details={"why": "100% _"}
    )
    assert [row.target for row in store.audit(AuditFilter(action="rule"), limit=2)] == ["3", "2"]
    assert [row.target for row in store.audit(AuditFilter(before=entries[2].key))] == ["1", "0"]
    assert len(store.audit(AuditFilter(since_ms=UnixMs(T0 + 3)))) == 2
    assert len(store.audit(AuditFilter(actor="ada"))) == 4


def test_audit_log_cannot_be_rewritten_when_the_database_is_accessible(open_store: Open) -> None:
    store = open_store()
    store.append_audit(entry("sign_in", outcome=Outcome.REFUSED))
    with pytest.raises(StoreError, match="append-only"), database_errors("here"), store._engine.begin() as connection:
        connection.execute(update(audit).values(actor="somebody else"))
    assert [row.actor for row in store.audit(AuditFilter())] == ["ada"]


def test_expired_entries_are_removed_when_the_store_is_maintained(open_store: Open) -> None:
    store = open_store()
    now = UnixMs(T0 + 100 * DAY_MS)
    store.add_session(session("over", expires_at=now))
    store.add_session(session("idle", expires_at=UnixMs(now + 1)))
    store.add_session(session("used", seen_at=now, expires_at=UnixMs(now + 1)))
    store.append_audit(entry("old"))
    store.append_audit(entry("new", at=now))
    store.add_token(token("dead"), digest="h1")
    store.add_token(token("live", expires_at=UnixMs(now + 1)), digest="h2")
    for _ in range(2):
        store.maintain(now_ms=now, idle_before=UnixMs(T0 + 1), audit_before=UnixMs(now - 30 * DAY_MS))
        assert [kept.digest for kept in store.sessions(Way.LOCAL, "ada")] == ["used"]
        assert [row.action for row in store.audit(AuditFilter())] == ["new"]
        assert [row.key for row in store.tokens()] == ["live"]


def test_order_of_entries_holds_when_many_are_of_one_millisecond(open_store: Open) -> None:
    store = open_store()
    for number in range(20):
        store.append_audit(entry("view.save", target=str(number)))
    assert [row.target for row in store.audit(AuditFilter())] == [str(number) for number in reversed(range(20))]
    with store._engine.begin() as connection:
        connection.execute(delete(audit).where(text("1 = 1")))
    assert store.audit(AuditFilter()) == []
