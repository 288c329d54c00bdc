"""Accounts, sessions, tokens and the audit log on SQLite and PostgreSQL. Stores no secret in plain text and verifies none."""

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
from clusterscape.store.records.engines import database_errors
from clusterscape.store.records.statements import upsert
from clusterscape.store.records.tables import accounts, api_tokens, audit, sessions

Record = TypeVar("Record")

MOST_AUDIT_ENTRIES = 10_000
"""Limit of one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Filter of audit entries; all fields that are set must match. ``before``: key of the last entry of the previous page."""

    actor: str | None = None
    action: str | None = None
    """An action or its first part: ``rule`` matches ``rule.save``."""
    since_ms: UnixMs | None = None
    before: str | None = None


class AccessStore:
    """Accounts, sessions, tokens, audit. Thread-safe; every write is one durable transaction."""

    def __init__(self, engine: Engine, *, where: str) -> None:
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._where = where
        self._entries = itertools.count()
        self._write_lock = threading.Lock()  # threads wait here instead of polling the database's lock

    def accounts(self) -> list[Account]:
        """All accounts, by login."""
        query = select(*rows.ACCOUNT_COLUMNS).order_by(accounts.c.login, accounts.c.way)
        return self._read(query, rows.account_of)

    def account(self, way: Way, login: str) -> Account | None:
        """One account, or None."""
        records = self._read(select(*rows.ACCOUNT_COLUMNS).where(*_is_of(accounts, way, login)), rows.account_of)
        return records[0] if records else None

    def password_hash(self, login: str) -> str | None:
        """The password hash of a local account; None if there is none."""
        query = select(accounts.c.password_hash).where(*_is_of(accounts, Way.LOCAL, login))
        with self._reading() as connection:
            password_hash: str | None = connection.scalar(query)
        return password_hash

    def add_account(self, account: Account, *, password_hash: str | None = None) -> bool:
        """Insert an account; False if the login already has one."""
        with self._writing() as connection:
            if connection.execute(
                select(accounts.c.login).where(*_is_of(accounts, account.way, account.login))
            ).first():
                return False
            connection.execute(accounts.insert(), [rows.account_row(account) | {"password_hash": password_hash}])
            return True

    def change_account(self, account: Account) -> bool:
        """Replace an account except password and creation time; False if there is none."""
        row = rows.account_row(account)
        values = {name: row[name] for name in row if name not in ("way", "login", "created_at")}
        return self._update(accounts, _is_of(accounts, account.way, account.login), values) > 0

    def set_password(self, login: str, password_hash: str) -> bool:
        """Set the password hash of a local account; False if there is none."""
        return self._update(accounts, _is_of(accounts, Way.LOCAL, login), {"password_hash": password_hash}) > 0

    def remove_account(self, way: Way, login: str) -> bool:
        """Remove an account with its sessions and tokens; False if there is none."""
        with self._writing() as connection:
            for table in (sessions, api_tokens):
                connection.execute(delete(table).where(*_is_of(table, way, login)))
            return connection.execute(delete(accounts).where(*_is_of(accounts, way, login))).rowcount > 0

    def add_session(self, session: Session) -> None:
        """Insert a session."""
        with self._writing() as connection:
            connection.execute(sessions.insert(), [rows.session_row(session)])

    def session(self, digest: str) -> tuple[Session, Account | None] | None:
        """A session with its account, even if expired or disabled; None if there is none."""
        row_pair = self._with_account(sessions, rows.SESSION_COLUMNS, sessions.c.digest == digest)
        return None if row_pair is None else (rows.session_of(row_pair[0]), row_pair[1])

    def sessions(self, way: Way, login: str | None) -> list[Session]:
        """All sessions of a login, newest first."""
        query = select(*rows.SESSION_COLUMNS).where(*_is_of(sessions, way, login))
        return self._read(query.order_by(sessions.c.created_at.desc()), rows.session_of)

    def touch_session(self, digest: str, at_ms: UnixMs) -> None:
        """Update the time of last use."""
        self._update(sessions, [sessions.c.digest == digest], {"seen_at": at_ms})

    def end_session(self, digest: str) -> bool:
        """Remove a session; False if there is none."""
        return self._delete(sessions, sessions.c.digest == digest) > 0

    def end_sessions(self, way: Way, login: str | None) -> int:
        """Remove all sessions of a login; returns their number."""
        return self._delete(sessions, *_is_of(sessions, way, login))

    def add_token(self, token: ApiToken, *, digest: str) -> None:
        """Insert an API token whose secret has this digest."""
        with self._writing() as connection:
            connection.execute(api_tokens.insert(), [rows.token_row(token, digest)])

    def find_token(self, digest: str) -> tuple[ApiToken, Account | None] | None:
        """The token whose secret has this digest, with its owner, even if expired or disabled; None if there is none."""
        row_pair = self._with_account(api_tokens, rows.TOKEN_COLUMNS, api_tokens.c.digest == digest)
        return None if row_pair is None else (rows.token_of(row_pair[0]), row_pair[1])

    def token(self, key: str) -> ApiToken | None:
        """The token of that key, or None."""
        tokens = self._read(select(*rows.TOKEN_COLUMNS).where(api_tokens.c.key == key), rows.token_of)
        return tokens[0] if tokens else None

    def tokens(self, way: Way | None = None, login: str | None = None) -> list[ApiToken]:
        """All tokens, or those of one owner; newest first."""
        query = select(*rows.TOKEN_COLUMNS).order_by(api_tokens.c.created_at.desc(), api_tokens.c.key)
        return self._read(query if way is None else query.where(*_is_of(api_tokens, way, login)), rows.token_of)

    def touch_token(self, key: str, at_ms: UnixMs) -> None:
        """Update the time of last use."""
        self._update(api_tokens, [api_tokens.c.key == key], {"used_at": at_ms})

    def revoke_token(self, key: str, at_ms: UnixMs) -> bool:
        """Revoke a token; False if there is none or it is already revoked."""
        where = [api_tokens.c.key == key, api_tokens.c.revoked_at.is_(None)]
        return self._update(api_tokens, where, {"revoked_at": at_ms}) > 0

    def append_audit(self, entry: AuditEntry) -> None:
        """Append an audit entry."""
        # Time, sequence within this process, and a random suffix that distinguishes processes.
        key = f"{entry.at:013d}-{next(self._entries) % 2**32:08x}-{secrets.token_hex(3)}"
        with self._writing() as connection:
            connection.execute(audit.insert(), [rows.audit_row(entry, key)])

    def audit(self, where: AuditFilter, *, limit: int = 200) -> list[AuditEntry]:
        """Entries that match, newest first."""
        query = select(*rows.AUDIT_COLUMNS).where(*_matching(where)).order_by(audit.c.key.desc())
        return self._read(query.limit(min(limit, MOST_AUDIT_ENTRIES)), rows.audit_entry_of)

    def maintain(self, *, now_ms: UnixMs, idle_before: UnixMs, audit_before: UnixMs) -> None:
        """Remove expired sessions, and audit entries and expired or revoked tokens before ``audit_before``."""
        is_over = or_(sessions.c.expires_at <= now_ms, sessions.c.seen_at <= idle_before)
        is_old = audit.c.key < f"{max(0, audit_before):013d}"
        is_dead = or_(api_tokens.c.expires_at < audit_before, api_tokens.c.revoked_at < audit_before)
        with self._reading() as connection:
            if not any(
                connection.execute(select(1).where(condition).limit(1)).first()
                for condition in (is_over, is_old, is_dead)
            ):
                return  # usually nothing to do: avoids the write lock
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
        with database_errors(self._where), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._write_lock, database_errors(self._where), self._writer.begin() as connection:
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
