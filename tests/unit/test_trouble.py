"""Log lines about repeated failures."""

import logging

import pytest

from clusterscape.errors import StoreError, Trouble


def test_each_failure_and_its_end_are_logged_once_when_it_is_retried_repeatedly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = Trouble(logging.getLogger("test"), "it cannot be read", "it is read again")
    trouble.end()
    for message in ("no answer", "no answer", "no answer", "refused", "refused"):
        trouble.tell(StoreError(message, hint="Look."))
    trouble.end()
    trouble.end()
    trouble.tell(StoreError("no answer"))
    assert [record.message.strip() for record in caplog.records] == [
        "it cannot be read: no answer Look.",
        "it cannot be read: refused Look.",
        "it is read again",
        "it cannot be read: no answer",
    ]
