"""Settings that have a new name. Files and environment variables with the old name are still read, with a warning."""

import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)

RENAMED: Mapping[str, str] = {
    "alerts.channels.*.tell_stops": "send_resolved",
    "auth.oidc.login_claim": "username_claim",
    "auth.oidc.title": "provider_name",
    "auth.oidc.title_claim": "name_claim",
    "auth.proxy.title_header": "name_header",
    "limits.http.body_stall_s": "body_timeout_s",
    "limits.http.bytes_per_s": "min_bytes_per_s",
    "limits.http.head_s": "header_timeout_s",
    "limits.http.held_body_bytes": "buffered_body_bytes",
    "limits.http.write_stall_s": "write_timeout_s",
    "limits.runs.future_s": "clock_skew_s",
    "limits.sources.answer_bytes": "response_bytes",
    "limits.uploads.import_s": "import_timeout_s",
    "limits.uploads.kept": "stored_traces",
    "limits.uploads.kept_bytes": "stored_bytes",
    "limits.uploads.kept_bytes_per_user": "stored_bytes_per_user",
    "limits.uploads.kept_per_user": "stored_traces_per_user",
    "limits.uploads.unpacked_ratio": "decompression_ratio",
    "limits.work.at_once": "concurrent_requests",
    "limits.work.per_user": "requests_per_user",
    "limits.work.runs_per_user": "simulations_per_user",
    "limits.work.runs_waiting": "queued_simulations",
    "limits.work.upload_stall_s": "upload_timeout_s",
    "limits.work.uploads_at_once": "concurrent_uploads",
    "limits.work.wait_s": "queue_timeout_s",
    "limits.work.waiting": "queued_requests",
    "remote_write.every_s": "interval_s",
    "rules.judge_every_s": "evaluation_interval_s",
    "storage.metrics_server.writes": "write_protocol",
}
"""Old key → new name in the same section; ``*`` stands for the name of a channel."""


def rename_settings(tree: Mapping[str, Any], source: str, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """``tree`` with the current names of all settings. ``source``: where it was read, for the warning.

    If a source sets both names, the new one wins.
    """
    renamed: dict[str, Any] = {}
    for name, value in tree.items():
        key = (*path, name)
        current = RENAMED.get(".".join(_generalize(key)), name)
        if current != name:
            log.warning("%s: setting `%s` is deprecated, use `%s`", source, ".".join(key), ".".join((*path, current)))
            if current in tree:
                continue
        renamed[current] = rename_settings(value, source, key) if isinstance(value, Mapping) else value
    return renamed


def _generalize(key: tuple[str, ...]) -> tuple[str, ...]:
    return (*key[:2], "*", *key[3:]) if key[:2] == ("alerts", "channels") and len(key) > 3 else key
