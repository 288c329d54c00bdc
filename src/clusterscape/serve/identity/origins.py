"""Detects cross-site requests by the headers of the browser, and by a header that only our page sends."""

from starlette.datastructures import Headers

from clusterscape.serve.identity.addresses import ClientInfo

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
PAGE_HEADER = "x-clusterscape-page"
"""A page of another origin can send it only after a CORS preflight, which always fails."""


def is_cross_site(headers: Headers, client: ClientInfo) -> bool:
    """Whether a browser sent the request for a page of another site. Scripts do not send these headers."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and origin != client.origin
