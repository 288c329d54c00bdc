"""Schedule of the accounting windows."""

import itertools

from clusterscape.collect.slurm.collector import (
    INCREMENT_S,
    MIN_INCREMENT_S,
    OVERLAP_S,
    RETRY_S,
    SETTLE_S,
    WINDOW_S,
    HistoryWindows,
    Window,
)
from clusterscape.model import UnixMs

NOW_S = 1_700_000_000


def at(seconds: float) -> UnixMs:
    return UnixMs(round((NOW_S + seconds) * 1000))


def read_all(windows: HistoryWindows, now: UnixMs) -> list[Window]:
    windows_read = []
    while (window := windows.next_window(now)) is not None:
        windows.succeeded(window)
        windows_read.append(window)
    return windows_read


def test_whole_past_is_read_newest_first_when_starting() -> None:
    windows_read = read_all(HistoryWindows(7), at(0))
    assert windows_read[0][1] == NOW_S
    assert windows_read[-1][0] == NOW_S - 7 * 86_400
    assert all(later[0] == earlier[1] for later, earlier in itertools.pairwise(windows_read))
    assert all(0 < end - start <= WINDOW_S for start, end in windows_read)


def test_only_new_records_are_read_when_the_backfill_is_done() -> None:
    windows = HistoryWindows(1)
    read_all(windows, at(0))
    assert windows.next_window(at(INCREMENT_S - 1)) is None
    assert read_all(windows, at(INCREMENT_S)) == [(NOW_S - OVERLAP_S, NOW_S + INCREMENT_S)]
    assert windows.next_window(at(INCREMENT_S + 1)) is None


def test_new_records_go_first_when_the_past_is_long() -> None:
    windows = HistoryWindows(1)
    first = windows.next_window(at(0))
    assert first is not None
    windows.succeeded(first)
    assert windows.next_window(at(INCREMENT_S)) == (NOW_S - OVERLAP_S, NOW_S + INCREMENT_S)


def test_window_is_requested_again_when_it_failed() -> None:
    windows = HistoryWindows(1)
    first = windows.next_window(at(0))
    windows.failed(at(0))
    assert windows.next_window(at(RETRY_S - 1)) is None
    assert windows.next_window(at(RETRY_S)) == first


def test_nothing_is_read_when_no_history_is_wanted() -> None:
    assert HistoryWindows(0).next_window(at(0)) is None


def test_new_records_are_read_at_once_when_the_queue_was_unavailable() -> None:
    windows = HistoryWindows(1)
    read_all(windows, at(0))
    windows.request_increment()
    assert read_all(windows, at(10)) == [(NOW_S - OVERLAP_S, NOW_S + 10)]
    assert windows.next_window(at(20)) is None
    windows.request_increment()
    assert windows.next_window(at(30)) is not None
    windows.failed(at(30))
    assert windows.next_window(at(30 + RETRY_S)) == (NOW_S + 10 - OVERLAP_S, NOW_S + 30 + RETRY_S)


def test_reading_continues_when_the_clock_went_ahead_and_came_back() -> None:
    windows = HistoryWindows(1)
    read_all(windows, at(0))
    read_all(windows, at(7200))
    windows.failed(at(7200))
    assert windows.next_window(at(10)) is None
    assert read_all(windows, at(10 + INCREMENT_S)) == [(NOW_S + 10 - OVERLAP_S, NOW_S + 10 + INCREMENT_S)]


def test_next_increment_comes_early_when_a_record_is_expected() -> None:
    windows = HistoryWindows(1)
    read_all(windows, at(0))
    windows.expect_record(at(100))
    assert windows.next_window(at(100 + SETTLE_S - 1)) is None
    assert read_all(windows, at(100 + SETTLE_S)) == [(NOW_S - OVERLAP_S, NOW_S + 100 + SETTLE_S)]
    assert windows.next_window(at(100 + SETTLE_S + MIN_INCREMENT_S)) is None


def test_increments_keep_their_distance_when_records_are_expected_all_the_time() -> None:
    windows = HistoryWindows(1)
    read_all(windows, at(0))
    reads: list[int] = []
    for second in range(INCREMENT_S):
        windows.expect_record(at(second))
        reads.extend(second for _ in read_all(windows, at(second)))
    assert reads == list(range(MIN_INCREMENT_S, INCREMENT_S, MIN_INCREMENT_S))
