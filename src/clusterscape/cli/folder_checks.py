"""What ``clusterscape doctor`` says of the data folder and of who may read what lies in it, and in the settings file."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from clusterscape.cli.check import Check
from clusterscape.errors import StoreError
from clusterscape.settings import Settings, StorageSettings
from clusterscape.store.data_folder import check_owner, find_wide

NAMED = 3


def check_folder(storage: StorageSettings) -> Check:
    """Whether the data folder can be used by this user, and has room."""
    what, folder = "data folder", storage.data_dir
    try:
        check_owner(folder)
    except StoreError as error:
        return Check(what=what, is_ok=False, message=error.message, hint=error.hint)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        hint = "Give storage.data_dir a folder that this user may write to."
        return Check(what=what, is_ok=False, message=f"{folder} cannot be written", hint=hint)
    free = shutil.disk_usage(existing).free
    if free < storage.min_free_bytes:
        return Check(
            what=what,
            is_ok=False,
            message=f"{folder} has {free / 2**20:,.0f} MiB free, less than storage.min_free_bytes",
            hint="Make room, shorten retention.raw_days, or choose another storage.data_dir.",
        )
    state = "" if existing == folder else " (made by the first start)"
    return Check(what=what, is_ok=True, message=f"{folder}{state}, {free / 2**30:,.0f} GiB free")


def may_open(storage: StorageSettings) -> bool:
    """Whether opening stores in the data folder creates no folder, and no file in another user's."""
    try:
        check_owner(storage.data_dir)
    except StoreError:
        return False
    return storage.data_dir.is_dir()


def check_permissions(settings: Settings, config: Path | None) -> list[Check]:
    """What other users of this machine may read: data, backups beside it, and a settings file with secrets."""
    what = "permissions"
    folder = settings.storage.data_dir
    wide = [*find_wide(settings.storage), *_wide_backups(folder)] if os.access(folder, os.R_OK | os.X_OK) else []
    checks = []
    if wide:
        names = ", ".join(str(path) for path in wide[:NAMED]) + (" …" if len(wide) > NAMED else "")
        hint = f"`clusterscape serve` tightens what it owns; by hand: chmod -R go= {wide[0]}"
        checks.append(Check(what=what, is_ok=False, message=f"other users may read or replace {names}", hint=hint))
    if (
        config is not None
        and config.exists()
        and config.stat().st_mode & stat.S_IRWXO
        and _has_secret(settings, config)
    ):
        message = f"everybody may read {config}, which holds secrets"
        checks.append(Check(what=what, is_ok=False, message=message, hint=f"chmod o= {config}"))
    return checks or [Check(what=what, is_ok=True, message="no other user may read data or secrets")]


def _wide_backups(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.tar") if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]


def _has_secret(settings: Settings, config: Path) -> bool:
    """Whether a secret of the settings stands in the file itself."""
    text = config.read_text(encoding="utf-8")
    return any(secret in text for secret in _secrets(settings))


def _secrets(section: BaseModel) -> Iterator[str]:
    """Values of fields that are never printed, and addresses with a password."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        nested = value.values() if isinstance(value, dict) else [value]
        for part in nested:
            if isinstance(part, BaseModel):
                yield from _secrets(part)
            elif isinstance(part, str) and part and (not field.repr or _has_password(part)):
                yield part


def _has_password(address: str) -> bool:
    _, separator, rest = address.partition("://")
    login, at, _ = rest.partition("@")
    return bool(separator and at and ":" in login and "/" not in login)
