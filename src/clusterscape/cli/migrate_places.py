"""Where a move goes from and to: words of the command line to storage settings, and what is different between the two."""

from collections.abc import Sequence
from pathlib import Path

from clusterscape.errors import ConfigError
from clusterscape.settings import StorageSettings

FORMS = (
    "`embedded` (this site's data_dir), a folder, http(s)://… (metrics), postgresql://… or sqlite:///… (records), "
    "s3://BUCKET/PREFIX (artifacts)"
)
EMBEDDED = {"metrics": "embedded", "records": "sqlite", "artifacts": "folder"}


def read_place(storage: StorageSettings, words: Sequence[str]) -> StorageSettings:
    """``storage`` with what ``words`` name in its place."""
    update: dict[str, str | Path] = {}
    for word in words:
        scheme = word.partition("://")[0] if "://" in word else word.partition(":")[0]
        if word == "embedded":
            update |= EMBEDDED
        elif scheme in ("http", "https"):
            update["metrics"] = word
        elif scheme in ("postgresql", "postgresql+psycopg", "sqlite"):
            update["records"] = word
        elif scheme == "s3":
            update["artifacts"] = word
        elif "://" not in word and ("/" in word or word.startswith((".", "~"))):
            update |= {**EMBEDDED, "data_dir": Path(word).expanduser().absolute()}
        else:
            raise ConfigError(f"`{word}` names no store", hint=f"Use {FORMS}.")
    return StorageSettings.model_validate({**storage.model_dump(), **update})


def different_parts(source: StorageSettings, target: StorageSettings) -> list[str]:
    """Which of ``metrics``, ``records``, ``artifacts`` lie at another place there."""
    return [part for part in EMBEDDED if _address(source, part) != _address(target, part)]


def _address(storage: StorageSettings, part: str) -> str:
    value = str(getattr(storage, part))
    return f"{value} in {storage.data_dir}" if value == EMBEDDED[part] else value
