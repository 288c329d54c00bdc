"""Which keys artifacts may have. The same for every store, so that artifacts can move from one to another."""

import re

from clusterscape.errors import NotFoundError, QueryError

MAX_KEY_LENGTH = 500
_PART = re.compile(r"[\w+=@-][\w.+=@ -]{0,199}")


def check_key(key: str) -> str:
    """``key``, or QueryError where it could leave its folder."""
    if len(key) > MAX_KEY_LENGTH or not all(_PART.fullmatch(part) for part in key.split("/")):
        raise QueryError(
            f"{key!r} cannot be the name of a stored file",
            hint="Use letters, digits and ._-+=@ with / between folders.",
        )
    return key


def missing(key: str) -> NotFoundError:
    """There is no such artifact."""
    return NotFoundError(f"there is no stored file {key}")
