"""Files of a run: complete frames survive a torn tail and a full disk."""

import math
import resource
from pathlib import Path

import pytest

from clusterscape.model.run_frames import (
    NO_STEP,
    FrameKind,
    decode_event,
    decode_samples,
    encode_event,
    encode_samples,
    iter_frames,
)
from clusterscape.track.spool import Spool


def samples_in(path: Path) -> list[tuple[int, int, float]]:
    samples = []
    for frame in iter_frames(path.read_bytes()):
        if frame.kind == FrameKind.SAMPLES:
            columns = decode_samples(frame.payload)
            samples += list(zip(columns.code, columns.step, columns.value, strict=True))
    return samples


def test_frames_come_back_when_they_were_written_whole() -> None:
    data = encode_event({"event": "tags", "tags": {"ä": math.nan}}) + encode_samples(
        [0, 1], [5, 6], [NO_STEP, 7], [0.5, -1]
    )
    event, samples = iter_frames(data)
    assert decode_event(event.payload) == {"event": "tags", "tags": {"ä": "nan"}}
    columns = decode_samples(samples.payload)
    assert (list(columns.code), list(columns.step), list(columns.value)) == ([0, 1], [NO_STEP, 7], [0.5, -1.0])
    assert samples.end == len(data)


def test_frames_before_it_are_read_when_the_tail_is_torn_anywhere() -> None:
    whole = encode_event({"event": "a"})
    data = whole + encode_samples([0], [1], [2], [3.0])
    for cut in range(len(whole), len(data)):
        assert [frame.end for frame in iter_frames(data[:cut])] == [len(whole)]


def test_reading_stops_when_a_frame_is_damaged() -> None:
    data = bytearray(encode_event({"event": "a"}) + encode_event({"event": "b"}))
    data[-1] ^= 1
    assert len(list(iter_frames(bytes(data)))) == 1
    assert list(iter_frames(b"not a spool at all")) == []


def test_nan_and_infinity_are_kept_when_a_script_logs_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a.spool")
    spool.add(1, 0, {"loss": math.nan, "gain": math.inf})
    spool.close()
    values = [value for _, _, value in samples_in(tmp_path / "a.spool")]
    assert math.isnan(values[0])
    assert values[1] == math.inf


def test_every_name_is_kept_when_there_are_ten_thousand(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a.spool")
    spool.start()
    spool.add(1, 3, {f"metric {number}": float(number) for number in range(10_000)})
    spool.close()
    assert samples_in(tmp_path / "a.spool") == [(number, 3, float(number)) for number in range(10_000)]


def test_nothing_raises_and_memory_holds_it_when_the_disk_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    spool = Spool(Path("/dev/full"))
    spool.add(1, None, {"loss": 1.0})
    spool.flush()
    assert not spool.event("mark", name="x")
    spool.add(2, None, {"loss": 2.0})
    spool.close()
    stderr = capsys.readouterr().err
    assert stderr.count("No space left") == 1
    assert "2 samples" in stderr


def test_buffered_samples_are_written_when_there_is_room_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = Spool(tmp_path / "a.spool")
    spool.add(1, 0, {"loss": 1.0})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # no file of this process may grow
    try:
        spool.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "a.spool").stat().st_size == 0
    spool.add(2, 1, {"loss": 2.0})
    spool.close()
    assert [value for _, _, value in samples_in(tmp_path / "a.spool")] == [1.0, 2.0]
    assert "the run goes on" in capsys.readouterr().err
