"""Passwords of local accounts: what makes a good one, argon2id of it, and comparing without telling who has an account."""

import re
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from clusterscape.errors import QueryError

MOST_CHARACTERS = 1024
"""Longer ones would only keep the processor busy."""
LOGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")

# RFC 9106, second recommended option: 64 MiB, three passes; a fifth of a second of one core.
_HASHER = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=4)


def check_login(login: str) -> str:
    """The login; raises QueryError where none could be meant."""
    if LOGIN.fullmatch(login) is None:
        raise QueryError(
            "that is no user name",
            hint="1 to 64 letters, digits, _ . @ and -, as the scheduler knows the user.",
        )
    return login


def check_new_password(password: str, *, login: str, min_length: int) -> str:
    """The password; raises QueryError where it is too short, too long or the login itself."""
    if len(password) < min_length:
        raise QueryError(
            f"the password is too short: {min_length} characters at least", hint="A sentence is easy to keep."
        )
    if len(password) > MOST_CHARACTERS:
        raise QueryError(f"the password is too long: {MOST_CHARACTERS} characters at most")
    if login.casefold() in password.casefold() and len(password) < min_length + len(login):
        raise QueryError("the password is little more than the user name", hint="Choose one that others cannot guess.")
    if len(set(password)) < 5:
        raise QueryError("the password repeats a few characters", hint="Choose one that others cannot guess.")
    return password


def hash_password(password: str) -> str:
    """argon2id with a salt of its own, and its parameters, as one text."""
    return _HASHER.hash(password)


def verify_password(stored: str | None, given: str) -> bool:
    """Whether ``given`` is the password; costs the same where there is no account (``stored`` is None)."""
    if len(given) > MOST_CHARACTERS:
        return False
    try:
        return _HASHER.verify(_decoy() if stored is None else stored, given) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(stored: str) -> bool:
    """Whether it was made with weaker parameters than today's."""
    return _HASHER.check_needs_rehash(stored)


@lru_cache(maxsize=1)
def _decoy() -> str:
    return _HASHER.hash("nobody has this password, and nobody is let in by it")
