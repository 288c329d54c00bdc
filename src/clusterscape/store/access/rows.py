"""Records of access to table rows and back, as pure functions. Column order of reading is that of the ``*_COLUMNS`` lists."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import orjson

from clusterscape.model.access import Account, ApiToken, AuditEntry, Outcome, Role, Scope, Session, Way
from clusterscape.store.records import tables
from clusterscape.store.records.rows import Row, json_text, storable

Values = Sequence[Any]  # what a driver hands back

ACCOUNT_COLUMNS = [tables.accounts.c[column.name] for column in fields(Account)]
SESSION_COLUMNS = [tables.sessions.c[column.name] for column in fields(Session)]
TOKEN_COLUMNS = [tables.api_tokens.c[column.name] for column in fields(ApiToken)]
AUDIT_COLUMNS = [tables.audit.c[column.name] for column in fields(AuditEntry)]


def account_row(account: Account) -> Row:
    """The row of an account, without the password hash."""
    return {
        "way": account.way.value,
        "login": storable(account.login),
        "role": account.role.value,
        "projects": json_text(sorted(account.projects)),
        "title": storable(account.title),
        "subject": storable(account.subject),
        "is_disabled": account.is_disabled,
        "created_at": account.created_at,
        "signed_in_at": account.signed_in_at,
    }


def account_of(row: Values) -> Account:
    """The account of a row of ACCOUNT_COLUMNS."""
    way, login, role, projects, title, subject, is_disabled, created_at, signed_in_at = row
    return Account(
        way=Way(way),
        login=login,
        role=Role(role),
        projects=frozenset(orjson.loads(projects)),
        title=title,
        subject=subject,
        is_disabled=bool(is_disabled),
        created_at=created_at,
        signed_in_at=signed_in_at,
    )


def session_row(session: Session) -> Row:
    """The row of a session."""
    return {
        "digest": session.digest,
        "way": session.way.value,
        "login": storable(session.login),
        "seal": session.seal,
        "created_at": session.created_at,
        "seen_at": session.seen_at,
        "expires_at": session.expires_at,
        "address": storable(session.address),
        "agent": storable(session.agent),
    }


def session_of(row: Values) -> Session:
    """The session of a row of SESSION_COLUMNS."""
    digest, way, login, seal, created_at, seen_at, expires_at, address, agent = row
    return Session(
        digest=digest,
        way=Way(way),
        login=login,
        seal=seal,
        created_at=created_at,
        seen_at=seen_at,
        expires_at=expires_at,
        address=address,
        agent=agent,
    )


def token_row(token: ApiToken, digest: str) -> Row:
    """The row of an API token whose secret has this digest."""
    return {
        "key": token.key,
        "digest": digest,
        "start": token.start,
        "title": storable(token.title),
        "way": token.way.value,
        "login": storable(token.login),
        "scopes": json_text(sorted(scope.value for scope in token.scopes)),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    }


def token_of(row: Values) -> ApiToken:
    """The token of a row of TOKEN_COLUMNS."""
    key, start, title, way, login, scopes, created_at, expires_at, used_at, revoked_at = row
    return ApiToken(
        key=key,
        start=start,
        title=title,
        way=Way(way),
        login=login,
        scopes=frozenset(Scope(scope) for scope in orjson.loads(scopes)),
        created_at=created_at,
        expires_at=expires_at,
        used_at=used_at,
        revoked_at=revoked_at,
    )


def audit_row(entry: AuditEntry, key: str) -> Row:
    """The row of an audit entry."""
    return {
        "key": key,
        "at": entry.at,
        "action": storable(entry.action),
        "outcome": entry.outcome.value,
        "actor": storable(entry.actor),
        "way": storable(entry.way),
        "address": storable(entry.address),
        "target": storable(entry.target),
        "details": json_text(dict(entry.details)),
    }


def audit_entry_of(row: Values) -> AuditEntry:
    """The entry of a row of AUDIT_COLUMNS."""
    at, action, outcome, actor, way, address, target, details, key = row
    return AuditEntry(
        at=at,
        action=action,
        outcome=Outcome(outcome),
        actor=actor,
        way=way,
        address=address,
        target=target,
        details=orjson.loads(details),
        key=key,
    )
