"""Posts a body over HTTP and says what the answer means for another attempt. Knows no channel's format."""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

import aiohttp

from clusterscape.model.ids import UnixMs
from clusterscape.watch.alerts.contract import Answer

_PASSING = frozenset({408, 409, 421, 423, 425, 429})
"""Of the 4xx, those that may end by themselves: timeout, conflict with the same key under way, too early, too many."""

_LONGEST_ANSWER = 300


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float, proxy: str | None, now: UnixMs
) -> Answer:
    """Accepted on any 2xx. A redirection is refused: followed, it would become a GET without the body."""
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=body, headers=headers, proxy=proxy, allow_redirects=False) as response,
        ):
            text = (await response.content.read(4096)).decode("utf-8", errors="replace").strip()
            return _judge(response, text, now)
    except TimeoutError:
        return Answer(is_accepted=False, text=f"{_place(url)} did not answer within {timeout_s:g} s")
    except aiohttp.InvalidURL:
        return Answer(is_accepted=False, is_lasting=True, text=f"{_place(url)} is not a valid address")
    except (aiohttp.ClientError, OSError) as error:
        return Answer(is_accepted=False, text=f"cannot reach {_place(url)}: {error or type(error).__name__}")


def _judge(response: aiohttp.ClientResponse, text: str, now: UnixMs) -> Answer:
    status = response.status
    shown = text if len(text) <= _LONGEST_ANSWER else f"{text[:_LONGEST_ANSWER]}…"
    said = f"{status} {response.reason or ''}".strip() + (f": {shown}" if shown else "")
    if 200 <= status < 300:
        return Answer(is_accepted=True, text=said)
    is_lasting = status < 500 and status not in _PASSING
    if 300 <= status < 400:
        said = f"{said} (it moved to {response.headers.get('Location', 'nowhere')}: set that address)"
    wait_s = parse_retry_after(response.headers.get("Retry-After"), now)
    return Answer(is_accepted=False, text=said, is_lasting=is_lasting, retry_after_s=wait_s)


def parse_retry_after(value: str | None, now: UnixMs) -> float | None:
    """Seconds from now, of a number of seconds or an HTTP date; None where it is neither."""
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


def _place(url: str) -> str:
    """The address without its path: that of a Slack webhook is a secret."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}" if found else "the address"
