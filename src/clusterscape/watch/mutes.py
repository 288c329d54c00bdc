"""Mutes as documents of the record store: of what nobody wants to be told for a while."""

from collections.abc import Mapping
from typing import Protocol, cast

from clusterscape.model import UnixMs, WorkloadId
from clusterscape.model.rules import Mute
from clusterscape.store.records.contract import RecordStore

MUTE = "mute"


class MuteFields(Protocol):
    """Anything with the fields of a mute."""

    @property
    def rule(self) -> str: ...
    @property
    def workload(self) -> str | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def created_at(self) -> int: ...
    @property
    def expires_at(self) -> int: ...


def write_mute(mute: MuteFields) -> dict[str, object]:
    """The document of a mute."""
    return {
        "rule": mute.rule,
        "workload": mute.workload,
        "reason": mute.reason,
        "author": mute.author,
        "created_at": mute.created_at,
        "expires_at": mute.expires_at,
    }


def read_mutes(records: RecordStore, now: UnixMs) -> dict[str, Mute]:
    """Mutes that have not expired, by key."""
    found = {document.key: _mute_of(document.body) for document in records.documents(MUTE)}
    return {key: mute for key, mute in found.items() if mute.expires_at > now}


def remove_mutes(records: RecordStore, rule: str) -> None:
    """Forget the mutes of a rule that is gone."""
    for document in records.documents(MUTE):
        if document.body["rule"] == rule:
            records.remove_document(MUTE, document.key)


def is_muted(mutes: Mapping[str, Mute], rule: str, workload: WorkloadId) -> bool:
    """Whether nobody is to be told of this rule broken by this workload."""
    return any(mute.rule == rule and mute.workload in (None, workload) for mute in mutes.values())


def _mute_of(body: Mapping[str, object]) -> Mute:
    workload = body["workload"]
    return Mute(
        rule=str(body["rule"]),
        workload=None if workload is None else WorkloadId(str(workload)),
        reason=str(body["reason"]),
        author=str(body["author"]),
        created_at=UnixMs(cast(int, body["created_at"])),
        expires_at=UnixMs(cast(int, body["expires_at"])),
    )
