"""Creates the secret of pseudonyms, once per site."""

import secrets
from collections.abc import Callable

from clusterscape.model import UnixMs
from clusterscape.query.redaction.pseudonyms import SECRET_KEY, SITE_KIND
from clusterscape.store.records.contract import RecordStore


def ensure_secret(records: RecordStore, clock: Callable[[], UnixMs]) -> None:
    """Creates the secret if the site has none. If several replicas start at once, the last write wins: read it afterwards."""
    if records.document(SITE_KIND, SECRET_KEY) is None:
        records.write_document(SITE_KIND, SECRET_KEY, {"secret": secrets.token_hex(32)}, at_ms=clock())
