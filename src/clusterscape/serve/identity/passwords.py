"""Passwords of local accounts: requirements, argon2id hashes, and a check that does not reveal which accounts exist."""

import re
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from clusterscape.errors import QueryError

MOST_CHARACTERS = 1024
"""Longer passwords would only waste CPU time."""
LOGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")

# RFC 9106, second recommended option: 64 MiB, three passes; a fifth of a second of one core.
_HASHER = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=4)


def check_login(login: str) -> str:
    """The login; raises QueryError if it is not a valid user name."""
    if LOGIN.fullmatch(login) is None:
        raise QueryError(
            "not a valid user name",
            hint="Use the scheduler's user name: 1 to 64 letters, digits, _ . @ and -.",
        )
    return login


def check_new_password(password: str, *, login: str, min_length: int) -> str:
    """The password; raises QueryError if it is too short, too long or too easy to guess."""
    if len(password) < min_length:
        raise QueryError(
            f"the password is too short: at least {min_length} characters", hint="A sentence is easy to remember."
        )
    if len(password) > MOST_CHARACTERS:
        raise QueryError(f"the password is too long: at most {MOST_CHARACTERS} characters")
    if login.casefold() in password.casefold() and len(password) < min_length + len(login):
        raise QueryError("the password is too similar to the user name", hint="Choose one that others cannot guess.")
    if len(set(password)) < 5:
        raise QueryError("the password uses too few different characters", hint="Choose one that others cannot guess.")
    return password


def hash_password(password: str) -> str:
    """The argon2id hash, encoded with its salt and parameters."""
    return _HASHER.hash(password)


def verify_password(stored: str | None, password: str) -> bool:
    """Whether ``password`` is right; takes the same time if there is no account (``stored`` is None)."""
    if len(password) > MOST_CHARACTERS:
        return False
    try:
        return _HASHER.verify(_dummy_hash() if stored is None else stored, password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(stored: str) -> bool:
    """Whether the hash uses weaker parameters than the current ones."""
    return _HASHER.check_needs_rehash(stored)


@lru_cache(maxsize=1)
def _dummy_hash() -> str:
    return _HASHER.hash("nobody has this password, and nobody is let in by it")
