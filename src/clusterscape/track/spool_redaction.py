"""Masks the spools of runs that an earlier version recorded, before they are sent. Runs of this version stay as they are."""

from pathlib import Path

from clusterscape.model.run_frames import FrameKind, decode_event, encode_event, iter_frames
from clusterscape.track.recorded_variables import select
from clusterscape.track.redaction import Redactor
from clusterscape.track.spooled import is_going_on, spool_files


def redact_spools(folder: Path) -> bool:
    """Rewrite the files of a run that has ended where they hold secrets; returns whether they did."""
    if is_going_on(folder):
        return False
    redactor = Redactor()
    changed = [_redact_file(file, redactor) for file in spool_files(folder)]
    return any(changed)


def _redact_file(file: Path, redactor: Redactor) -> bool:
    data = file.read_bytes()
    parts: list[bytes] = []
    begin = 0
    for frame in iter_frames(data):
        whole = data[begin : frame.end]
        parts.append(_redact_frame(whole, frame.payload, redactor) if frame.kind == FrameKind.EVENT else whole)
        begin = frame.end
    masked = b"".join(parts)
    if masked == data[:begin]:
        return False
    temporary = file.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_bytes(masked)
    temporary.replace(file)
    return True


def _redact_frame(whole: bytes, payload: bytes, redactor: Redactor) -> bytes:
    try:
        event = decode_event(payload)
    except ValueError:
        return whole
    masked = redactor.fields(event)
    if event["event"] == "environment" and "environ_patterns" not in event:
        environ = masked.get("environ")
        masked["environ"] = select(environ) if isinstance(environ, dict) else {}
    if masked == event:
        return whole
    # Padded to its old size: a server that has the beginning of the file counts in bytes.
    return encode_event(masked, min_payload_bytes=len(payload))
