"""Requests that another site's page made a browser send: told by the browser's own headers, and by one only our page sends."""

from starlette.datastructures import Headers

from clusterscape.serve.identity.addresses import Whence

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
PAGE_HEADER = "x-clusterscape-page"
"""A page of another origin cannot send it without asking first, and is never told yes."""


def is_foreign(headers: Headers, whence: Whence) -> bool:
    """Whether the browser says that the request was made by another site's page. Scripts say nothing, and are none."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and origin != whence.origin
