"""Explains why an exporter could not be scraped, and what to do about it."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from clusterscape.collect.bounded_responses import ResponseTooLargeError
from clusterscape.collect.exposition import Malformed
from clusterscape.collect.targets import Target
from clusterscape.model import RawScrape


class BadStatusError(Exception):
    """The exporter returned an HTTP status other than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong, and what to do."""

    message: str
    hint: str


def explain_error(error: Exception, target: Target, timeout_s: float) -> Failure:
    """Explain an exception that was raised while fetching."""
    where, start_or_remove = f"{target.host}:{target.port}", _start_or_remove(target)
    match error:
        case BadStatusError():
            return _explain_status(error.status, target)
        case ResponseTooLargeError():
            hint = f"{_is_it_the_exporter(target)} Or raise limits.sources.scrape_bytes."
            return Failure(f"{where} returned more data than an exporter should", hint)
        case TimeoutError():
            return Failure(
                f"{where} did not respond within {timeout_s:g} s",
                f"Check that {target.host} is up and that no firewall blocks port {target.port}; {start_or_remove}",
            )
        case aiohttp.ClientConnectorDNSError():
            return Failure(
                f"cannot resolve the host name {target.host}",
                f"Check its spelling in {target.origin} and this host's DNS.",
            )
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError():
            return Failure(
                f"the certificate of {where} is not trusted by this host",
                "Install its certificate authority on this host, or use http://.",
            )
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return Failure(
                f"{where} closed the connection before the response was complete",
                f"Check the log of dcgm-exporter on {target.node or target.host}.",
            )
        case OSError():
            return _explain_os_error(error, target)
        case _:
            return Failure(f"{where} did not send a valid HTTP response: {error}", _is_it_the_exporter(target))


def find_failure(scrape: RawScrape, target: Target) -> Failure | None:
    """Return what is wrong with a complete response; None if it contains samples."""
    where = f"{target.host}:{target.port}"
    if len(scrape.series):
        return None
    if scrape.malformed:
        return Failure(f"the response of {where} is not in the Prometheus text format", _is_it_the_exporter(target))
    return Failure(
        f"{where} responds, but without samples",
        f"dcgm-exporter on {target.node or target.host} sees no GPU: check its log, nvidia-smi and nv-hostengine there.",
    )


_LIMIT_WARNINGS = (
    (Malformed.TOO_MANY, "it has more series than the limit: new series are dropped", "series_per_target"),
    (Malformed.LONG_LINE, "some lines are too long: they are dropped", "line_bytes"),
    (Malformed.LONG_LABEL, "some labels are too long: their series are dropped", "label_length"),
)


def find_limit_warning(malformed: Mapping[str, int]) -> Failure | None:
    """Return which limit a parsed response exceeds. The message has no counts, because they change with every scrape."""
    for reason, message, setting in _LIMIT_WARNINGS:
        if malformed.get(reason):
            return Failure(message, f"Check what it exports, or raise limits.sources.{setting}.")
    return None


def _explain_status(status: int, target: Target) -> Failure:
    message = f"{target.host}:{target.port} returned HTTP {status}"
    if status == 404:
        return Failure(message, f"{target.shown_url} does not exist: give the exporter's full URL in {target.origin}.")
    if status in (401, 403):
        return Failure(message, f"The exporter requires a password: use http://user:password@… in {target.origin}.")
    if status >= 500:
        return Failure(message, f"dcgm-exporter on {target.node or target.host} has an internal error: check its log.")
    return Failure(message, _is_it_the_exporter(target))


def _explain_os_error(error: OSError, target: Target) -> Failure:
    where = f"{target.host}:{target.port}"
    code = error.errno
    # If a name has several addresses and all refuse, the error has no code.
    if code == errno.ECONNREFUSED or (code is None and "refused" in str(error).lower()):
        return Failure(f"{where} refused the connection", _capitalized(_start_or_remove(target)))
    if code in (errno.EMFILE, errno.ENFILE):
        return Failure(
            "too many open files: the limit of this host is too low to scrape every exporter",
            "Raise the limit: ulimit -n 65536, or LimitNOFILE.",
        )
    if code in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN):
        return Failure(f"no route to {where}", f"Check that {target.host} is up and reachable from this host.")
    if code in (errno.ECONNRESET, errno.EPIPE):
        return Failure(
            f"{where} closed the connection before the response was complete",
            f"Check the log of dcgm-exporter on {target.node or target.host}.",
        )
    return Failure(f"{where} cannot be reached: {error.strerror or error}", _capitalized(_start_or_remove(target)))


def _start_or_remove(target: Target) -> str:
    return f"start dcgm-exporter on {target.node or target.host} or remove it from {target.origin}."


def _is_it_the_exporter(target: Target) -> str:
    return f"A program other than dcgm-exporter may listen on port {target.port}: check {target.origin}."


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
