"""Posts a body over HTTP; decides whether a failure is worth a retry. Independent of the channel's format."""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

import aiohttp

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import DeliveryResult

_TEMPORARY_STATUSES = frozenset({408, 409, 421, 423, 425, 429})
"""4xx statuses that may pass: timeout, conflict with a request in progress, locked, too early, too many requests."""

_LONGEST_RESPONSE = 300


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float, proxy: str | None, now: UnixMs
) -> DeliveryResult:
    """Post ``body``; accepted on any 2xx. Redirects are not followed: they would become a GET without the body."""
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=body, headers=headers, proxy=proxy, allow_redirects=False) as response,
        ):
            text = (await response.content.read(4096)).decode("utf-8", errors="replace").strip()
            return _to_result(response, text, now)
    except TimeoutError:
        return DeliveryResult(is_accepted=False, text=f"{_origin_of(url)} did not answer within {timeout_s:g} s")
    except aiohttp.InvalidURL:
        return DeliveryResult(is_accepted=False, is_lasting=True, text=f"{_origin_of(url)} is not a valid URL")
    except (aiohttp.ClientError, OSError) as error:
        return DeliveryResult(
            is_accepted=False, text=f"cannot reach {_origin_of(url)}: {error or type(error).__name__}"
        )


def _to_result(response: aiohttp.ClientResponse, text: str, now: UnixMs) -> DeliveryResult:
    status = response.status
    excerpt = text if len(text) <= _LONGEST_RESPONSE else f"{text[:_LONGEST_RESPONSE]}…"
    summary = f"{status} {response.reason or ''}".strip() + (f": {excerpt}" if excerpt else "")
    if 200 <= status < 300:
        return DeliveryResult(is_accepted=True, text=summary)
    is_lasting = status < 500 and status not in _TEMPORARY_STATUSES
    if 300 <= status < 400:
        summary = f"{summary} (redirects to {response.headers.get('Location', 'nowhere')}: configure that URL)"
    wait_s = parse_retry_after(response.headers.get("Retry-After"), now)
    return DeliveryResult(is_accepted=False, text=summary, is_lasting=is_lasting, retry_after_s=wait_s)


def parse_retry_after(value: str | None, now: UnixMs) -> float | None:
    """Seconds from now, from a number of seconds or an HTTP date; None if it is neither."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now / 1000)


def _origin_of(url: str) -> str:
    """The URL without its path, which is a secret in Slack webhooks."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}" if separator else "the URL"
