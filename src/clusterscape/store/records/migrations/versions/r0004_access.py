"""Who may come in: accounts, sessions, API tokens, and the audit log, which nobody may rewrite."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Text
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

SQLITE_APPEND_ONLY = """
CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""
POSTGRES_REFUSE = """
CREATE FUNCTION clusterscape_refuse_update() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$
"""
POSTGRES_APPEND_ONLY = """
CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
FOR EACH ROW EXECUTE FUNCTION clusterscape_refuse_update()
"""


def upgrade() -> None:
    """Create the tables; nobody has an account yet."""
    _create_accounts()
    _create_tokens()
    _create_audit()


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        Column("way", TEXT, primary_key=True),
        Column("login", TEXT, primary_key=True),
        Column("role", TEXT, nullable=False),
        Column("projects", TEXT, nullable=False),
        Column("title", TEXT),
        Column("subject", TEXT),
        Column("is_disabled", Boolean, nullable=False),
        Column("password_hash", TEXT),
        Column("created_at", BigInteger, nullable=False),
        Column("signed_in_at", BigInteger),
    )
    op.create_table(
        "sessions",
        Column("digest", TEXT, primary_key=True),
        Column("way", TEXT, nullable=False),
        Column("login", TEXT),
        Column("seal", TEXT),
        Column("created_at", BigInteger, nullable=False),
        Column("seen_at", BigInteger, nullable=False),
        Column("expires_at", BigInteger, nullable=False),
        Column("address", TEXT, nullable=False),
        Column("agent", TEXT, nullable=False),
    )
    op.create_index("sessions_by_login", "sessions", ["way", "login"])


def _create_tokens() -> None:
    op.create_table(
        "api_tokens",
        Column("key", TEXT, primary_key=True),
        Column("digest", TEXT, nullable=False),
        Column("start", TEXT, nullable=False),
        Column("title", TEXT, nullable=False),
        Column("way", TEXT, nullable=False),
        Column("login", TEXT, nullable=False),
        Column("scopes", TEXT, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("expires_at", BigInteger, nullable=False),
        Column("used_at", BigInteger),
        Column("revoked_at", BigInteger),
    )
    op.create_index("api_tokens_by_digest", "api_tokens", ["digest"], unique=True)
    op.create_index("api_tokens_by_login", "api_tokens", ["way", "login"])


def _create_audit() -> None:
    op.create_table(
        "audit",
        Column("key", TEXT, primary_key=True),
        Column("at", BigInteger, nullable=False),
        Column("action", TEXT, nullable=False),
        Column("outcome", TEXT, nullable=False),
        Column("actor", TEXT),
        Column("way", TEXT),
        Column("address", TEXT),
        Column("target", TEXT),
        Column("details", TEXT, nullable=False),
    )
    op.create_index("audit_by_actor", "audit", ["actor", "key"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(POSTGRES_REFUSE)
        op.execute(POSTGRES_APPEND_ONLY)
    else:
        op.execute(SQLITE_APPEND_ONLY)
