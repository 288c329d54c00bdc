"""Metrics that a script exposes to Prometheus, ``prometheus=http://127.0.0.1:8000/metrics``: text format, gauges and counters."""

import re
from collections.abc import Iterator, Sequence

from clusterscape.model.run_frames import SampleScope
from clusterscape.track.listeners.contract import ListenedRun, ListenerContext, ListenerUnavailableError

_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})?\s+(\S+)")
_MOST_BYTES = 8 * 2**20
_MOST_SERIES = 10_000


class PrometheusListener:
    """Scrapes one endpoint. Errors before the first response are ignored, because scripts need time to start."""

    name = "prometheus"
    period_s = 1.0

    def __init__(self, context: ListenerContext) -> None:
        self._url = context.argument
        self._has_answered = False

    def open(self, runs: Sequence[ListenedRun]) -> None:
        """Check the URL."""
        del runs
        if not self._url or not self._url.startswith(("http://", "https://")):
            raise ListenerUnavailableError("it needs an address: prometheus=http://127.0.0.1:8000/metrics")

    def sample(self, runs: Sequence[ListenedRun], time_us: int) -> None:
        """Every finite number, under its name with its labels."""
        from urllib.error import URLError
        from urllib.request import urlopen

        assert self._url is not None
        try:
            with urlopen(self._url, timeout=self.period_s) as answer:  # noqa: S310 – the scheme was checked
                text = answer.read(_MOST_BYTES).decode("utf-8", "replace")
        except (URLError, OSError):
            if self._has_answered:
                raise
            return
        self._has_answered = True
        for name, value in parse_exposition(text):
            for run in runs:
                run.spool.sample(time_us, name, value, scope=SampleScope.RUN)

    def finish(self, run: ListenedRun, time_us: int) -> None:
        """Nothing to do: the endpoint has ended with the run."""

    def close(self) -> None:
        """Nothing to close."""


def parse_exposition(text: str) -> Iterator[tuple[str, float]]:
    """Names with labels as written, and finite values; limited in number, so that a faulty script does not fill the disk."""
    count = 0
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if value - value == 0.0:
            yield match[1] + (match[2] or ""), value
            count += 1
            if count == _MOST_SERIES:
                return
