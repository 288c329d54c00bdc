"""Says in plain words why an exporter could not be read, and what to do about it. Knows the exporter, not the round."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from clusterscape.collect.bounded_answers import AnswerTooLargeError
from clusterscape.collect.exposition import Malformed
from clusterscape.collect.targets import Target
from clusterscape.model import RawScrape


class BadStatusError(Exception):
    """The exporter answered with another HTTP status than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong, and what to do."""

    message: str
    hint: str


def explain_error(error: Exception, target: Target, timeout_s: float) -> Failure:
    """The failure behind an exception of the fetch."""
    where, start_or_remove = f"{target.host}:{target.port}", _start_or_remove(target)
    match error:
        case BadStatusError():
            return _explain_status(error.status, target)
        case AnswerTooLargeError():
            hint = f"{_is_it_the_exporter(target)} Or raise limits.sources.scrape_bytes."
            return Failure(f"{where} answers with more data than an exporter has", hint)
        case TimeoutError():
            return Failure(
                f"{where} did not answer within {timeout_s:g} s",
                f"Check that {target.host} is up and that no firewall blocks port {target.port}; {start_or_remove}",
            )
        case aiohttp.ClientConnectorDNSError():
            return Failure(
                f"the name {target.host} is not known",
                f"Check its spelling in {target.origin} and this host's DNS.",
            )
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError():
            return Failure(f"{where} has no certificate that this host trusts", "Add its authority, or use http://.")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return Failure(
                f"{where} broke the connection off in the middle",
                f"Look at dcgm-exporter's log on {target.node or target.host}.",
            )
        case OSError():
            return _explain_os_error(error, target)
        case _:
            return Failure(f"{where} does not answer as an HTTP server should: {error}", _is_it_the_exporter(target))


def find_failure(scrape: RawScrape, target: Target) -> Failure | None:
    """What is wrong with an answer that arrived whole; None where it holds samples."""
    where = f"{target.host}:{target.port}"
    if len(scrape.series):
        return None
    if scrape.malformed:
        return Failure(f"what {where} answers is not exposition text", _is_it_the_exporter(target))
    return Failure(
        f"{where} answers, but without any sample",
        f"dcgm-exporter on {target.node or target.host} sees no GPU: check nvidia-smi and nv-hostengine there, and its log.",
    )


_NOTES = (
    (Malformed.TOO_MANY, "has more series than are accepted: new ones are dropped", "series_per_target"),
    (Malformed.LONG_LINE, "has lines that are too long: they are dropped", "line_bytes"),
    (Malformed.LONG_LABEL, "has labels that are too long: their series are dropped", "label_length"),
)


def find_note(malformed: Mapping[str, int]) -> Failure | None:
    """Which limit an answer that was read is beyond. Without numbers, which differ from scrape to scrape."""
    for reason, words, setting in _NOTES:
        if malformed.get(reason):
            return Failure(f"it {words}", f"Look at what it exports, or raise limits.sources.{setting}.")
    return None


def _explain_status(status: int, target: Target) -> Failure:
    message = f"{target.host}:{target.port} answers HTTP {status}"
    if status == 404:
        return Failure(
            message, f"Nothing is at {target.shown_url}: give the exporter's full address in {target.origin}."
        )
    if status in (401, 403):
        return Failure(message, f"The exporter wants a password: http://user:password@… in {target.origin}.")
    if status >= 500:
        return Failure(message, f"dcgm-exporter on {target.node or target.host} fails itself: look at its log.")
    return Failure(message, _is_it_the_exporter(target))


def _explain_os_error(error: OSError, target: Target) -> Failure:
    where = f"{target.host}:{target.port}"
    code = error.errno
    # Several addresses of one name that all refuse come as one error without a code.
    if code == errno.ECONNREFUSED or (code is None and "refused" in str(error).lower()):
        return Failure(f"{where} refuses connections", _capitalized(_start_or_remove(target)))
    if code in (errno.EMFILE, errno.ENFILE):
        return Failure(
            "this host allows too few open files to ask every exporter",
            "Raise the limit: ulimit -n 65536, or LimitNOFILE.",
        )
    if code in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN):
        return Failure(f"there is no way to {where}", f"Check that {target.host} is up and reachable from here.")
    if code in (errno.ECONNRESET, errno.EPIPE):
        return Failure(
            f"{where} broke the connection off in the middle",
            f"Look at dcgm-exporter's log on {target.node or target.host}.",
        )
    return Failure(f"{where} cannot be reached: {error.strerror or error}", _capitalized(_start_or_remove(target)))


def _start_or_remove(target: Target) -> str:
    return f"start dcgm-exporter on {target.node or target.host} or remove it from {target.origin}."


def _is_it_the_exporter(target: Target) -> str:
    return f"Another program than dcgm-exporter may listen on port {target.port}: check {target.origin}."


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
