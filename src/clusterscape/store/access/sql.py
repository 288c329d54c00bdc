"""Who may come in and what was done, on SQLite and PostgreSQL by the same statements. Keeps no secret in clear, compares none."""

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, delete, or_, select, update

from clusterscape.model import UnixMs
from clusterscape.model.access import Account, ApiToken, AuditEntry, Session, Way
from clusterscape.store.access import rows
from clusterscape.store.records.faults import explained
from clusterscape.store.records.tables import accounts, api_tokens, audit, sessions
from clusterscape.store.records.upserts import upsert

Record = TypeVar("Record")

MOST_AUDIT_ENTRIES = 10_000
"""In one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries; every given field must match. ``before`` is the key of the last entry already seen."""

    actor: str | None = None
    action: str | None = None
    """A whole action, or its first part: ``rule`` finds ``rule.save``."""
    since_ms: UnixMs | None = None
    before: str | None = None


class AccessStore:
    """Accounts, sessions, tokens, audit. Thread-safe; every write is one durable transaction."""

    def __init__(self, engine: Engine, *, where: str) -> None:
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._where = where
        self._entries = itertools.count()
        self._write_lock = threading.Lock()  # threads queue here rather than poll the database's own lock

    def accounts(self) -> list[Account]:
        """All accounts, by login."""
        query = select(*rows.ACCOUNT_COLUMNS).order_by(accounts.c.login, accounts.c.way)
        return self._read(query, rows.account_of)

    def account(self, way: Way, login: str) -> Account | None:
        """One account, or None."""
        found = self._read(select(*rows.ACCOUNT_COLUMNS).where(*_is_of(accounts, way, login)), rows.account_of)
        return found[0] if found else None

    def password_hash(self, login: str) -> str | None:
        """Of a local account; None where there is none."""
        query = select(accounts.c.password_hash).where(*_is_of(accounts, Way.LOCAL, login))
        with self._reading() as connection:
            found: str | None = connection.scalar(query)
        return found

    def add_account(self, account: Account, *, password_hash: str | None = None) -> bool:
        """Insert; False, and nothing changed, where the login has an account already."""
        with self._writing() as connection:
            if connection.execute(
                select(accounts.c.login).where(*_is_of(accounts, account.way, account.login))
            ).first():
                return False
            connection.execute(accounts.insert(), [rows.account_row(account) | {"password_hash": password_hash}])
            return True

    def change_account(self, account: Account) -> bool:
        """Replace all but password and time of creation; False where there is none."""
        row = rows.account_row(account)
        values = {name: row[name] for name in row if name not in ("way", "login", "created_at")}
        return self._update(accounts, _is_of(accounts, account.way, account.login), values) > 0

    def set_password(self, login: str, password_hash: str) -> bool:
        """Of a local account; False where there is none."""
        return self._update(accounts, _is_of(accounts, Way.LOCAL, login), {"password_hash": password_hash}) > 0

    def remove_account(self, way: Way, login: str) -> bool:
        """Forget an account with its sessions and tokens; False where there is none."""
        with self._writing() as connection:
            for table in (sessions, api_tokens):
                connection.execute(delete(table).where(*_is_of(table, way, login)))
            return connection.execute(delete(accounts).where(*_is_of(accounts, way, login))).rowcount > 0

    def add_session(self, session: Session) -> None:
        """Keep a new session."""
        with self._writing() as connection:
            connection.execute(sessions.insert(), [rows.session_row(session)])

    def session(self, digest: str) -> tuple[Session, Account | None] | None:
        """A session with its account, whatever their state; None where there is none."""
        found = self._with_account(sessions, rows.SESSION_COLUMNS, sessions.c.digest == digest)
        return None if found is None else (rows.session_of(found[0]), found[1])

    def sessions(self, way: Way, login: str | None) -> list[Session]:
        """All of one login, newest first."""
        query = select(*rows.SESSION_COLUMNS).where(*_is_of(sessions, way, login))
        return self._read(query.order_by(sessions.c.created_at.desc()), rows.session_of)

    def touch_session(self, digest: str, at_ms: UnixMs) -> None:
        """It was used."""
        self._update(sessions, [sessions.c.digest == digest], {"seen_at": at_ms})

    def end_session(self, digest: str) -> bool:
        """Forget a session; False where there is none."""
        return self._delete(sessions, sessions.c.digest == digest) > 0

    def end_sessions(self, way: Way, login: str | None) -> int:
        """Forget all sessions of a login; returns how many."""
        return self._delete(sessions, *_is_of(sessions, way, login))

    def add_token(self, token: ApiToken, *, digest: str) -> None:
        """Keep a new API token, whose secret has this digest."""
        with self._writing() as connection:
            connection.execute(api_tokens.insert(), [rows.token_row(token, digest)])

    def find_token(self, digest: str) -> tuple[ApiToken, Account | None] | None:
        """The token whose secret has this digest with its owner, whatever their state; None where there is none."""
        found = self._with_account(api_tokens, rows.TOKEN_COLUMNS, api_tokens.c.digest == digest)
        return None if found is None else (rows.token_of(found[0]), found[1])

    def token(self, key: str) -> ApiToken | None:
        """The token of that key, or None."""
        found = self._read(select(*rows.TOKEN_COLUMNS).where(api_tokens.c.key == key), rows.token_of)
        return found[0] if found else None

    def tokens(self, way: Way | None = None, login: str | None = None) -> list[ApiToken]:
        """All tokens, or those of one owner; newest first."""
        query = select(*rows.TOKEN_COLUMNS).order_by(api_tokens.c.created_at.desc(), api_tokens.c.key)
        return self._read(query if way is None else query.where(*_is_of(api_tokens, way, login)), rows.token_of)

    def touch_token(self, key: str, at_ms: UnixMs) -> None:
        """It was used."""
        self._update(api_tokens, [api_tokens.c.key == key], {"used_at": at_ms})

    def revoke_token(self, key: str, at_ms: UnixMs) -> bool:
        """It opens nothing from now on; False where there is none or it is revoked already."""
        where = [api_tokens.c.key == key, api_tokens.c.revoked_at.is_(None)]
        return self._update(api_tokens, where, {"revoked_at": at_ms}) > 0

    def append_audit(self, entry: AuditEntry) -> None:
        """Write what was done, for good."""
        # The time, the order within this process, and what tells two processes apart.
        key = f"{entry.at:013d}-{next(self._entries) % 2**32:08x}-{secrets.token_hex(3)}"
        with self._writing() as connection:
            connection.execute(audit.insert(), [rows.audit_row(entry, key)])

    def audit(self, where: AuditFilter, *, limit: int = 200) -> list[AuditEntry]:
        """Entries that match, newest first."""
        query = select(*rows.AUDIT_COLUMNS).where(*_matching(where)).order_by(audit.c.key.desc())
        return self._read(query.limit(min(limit, MOST_AUDIT_ENTRIES)), rows.audit_entry_of)

    def maintain(self, *, now_ms: UnixMs, idle_before: UnixMs, audit_before: UnixMs) -> None:
        """Forget sessions that are over, and before ``audit_before`` what was done and tokens that opened nothing any more."""
        is_over = or_(sessions.c.expires_at <= now_ms, sessions.c.seen_at <= idle_before)
        is_old = audit.c.key < f"{max(0, audit_before):013d}"
        is_dead = or_(api_tokens.c.expires_at < audit_before, api_tokens.c.revoked_at < audit_before)
        with self._reading() as connection:
            if not any(
                connection.execute(select(1).where(each).limit(1)).first() for each in (is_over, is_old, is_dead)
            ):
                return  # the ordinary case takes no writer's lock
        with self._writing() as connection:
            connection.execute(delete(sessions).where(is_over))
            connection.execute(delete(audit).where(is_old))
            connection.execute(delete(api_tokens).where(is_dead))

    def write_account(self, account: Account) -> None:
        """Insert or replace an account that has no password here."""
        with self._writing() as connection:
            upsert(connection, accounts, [rows.account_row(account) | {"password_hash": None}])

    def close(self) -> None:
        """Release the connections."""
        self._engine.dispose()

    def _with_account(
        self, table: Any, columns: Sequence[Any], where: ColumnElement[bool]
    ) -> tuple[Sequence[Any], Account | None] | None:
        is_owner = and_(accounts.c.way == table.c.way, accounts.c.login == table.c.login)
        query = select(*columns, *rows.ACCOUNT_COLUMNS).select_from(table.outerjoin(accounts, is_owner)).where(where)
        with self._reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        own, owner = row[: len(columns)], row[len(columns) :]
        return own, None if owner[0] is None else rows.account_of(owner)

    def _read(self, query: Select[Any], build: Callable[[Sequence[Any]], Record]) -> list[Record]:
        with self._reading() as connection:
            return [build(row) for row in connection.execute(query).fetchall()]

    def _update(self, table: Any, where: Sequence[ColumnElement[bool]], values: dict[str, object]) -> int:
        with self._writing() as connection:
            return connection.execute(update(table).where(*where).values(**values)).rowcount

    def _delete(self, table: Any, *where: ColumnElement[bool]) -> int:
        with self._writing() as connection:
            return connection.execute(delete(table).where(*where)).rowcount

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with explained(self._where), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._write_lock, explained(self._where), self._writer.begin() as connection:
            yield connection


def _is_of(table: Any, way: Way, login: str | None) -> list[ColumnElement[bool]]:
    return [table.c.way == way.value, table.c.login.is_(None) if login is None else table.c.login == login]


def _matching(where: AuditFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if where.actor is not None:
        conditions.append(audit.c.actor == where.actor)
    if where.action is not None:
        conditions.append(
            or_(audit.c.action == where.action, audit.c.action.startswith(f"{where.action}.", autoescape=True))
        )
    if where.since_ms is not None:
        conditions.append(audit.c.key >= f"{max(0, where.since_ms):013d}")
    if where.before is not None:
        conditions.append(audit.c.key < where.before)
    return conditions
