"""Remote write requests, decoded by a small protobuf reader in this file."""

import struct
from collections.abc import Iterator

import cramjam
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from stores.batches import NOON, batch_of

from clusterscape.store.metrics.sample_writers import SeriesEncoder, compress, labelled_unit


def fields(content: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """(number, value) of each field of a protobuf message."""
    place = 0

    def varint() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = content[place]
            place += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while place < len(content):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, struct.unpack("<d", content[place : place + 8])[0]
            place += 8
        else:
            assert tag & 7 == 2
            length = varint()
            yield tag >> 3, content[place : place + length]
            place += length


def decode(request: bytes) -> list[tuple[dict[str, str], list[tuple[int, float]]]]:
    """(labels, samples) of each series of a WriteRequest."""
    decoded = []
    for number, series in fields(request):
        assert number == 1
        assert isinstance(series, bytes)
        labels: list[tuple[str, str]] = []
        samples: list[tuple[int, float]] = []
        for part, content in fields(series):
            assert isinstance(content, bytes)
            values = dict(fields(content))
            if part == 1:
                name, value = values[1], values[2]
                assert isinstance(name, bytes)
                assert isinstance(value, bytes)
                labels.append((name.decode(), value.decode()))
            else:
                samples.append((int(values[2]), float(values[1])))
        assert labels == sorted(labels), "receivers want labels sorted by name"
        decoded.append((dict(labels), samples))
    return decoded


def test_series_hold_their_labels_and_samples_in_order_when_decoded() -> None:
    batch = batch_of(
        ("power_watts", "n1:0", NOON, 300.0),
        ("gpu_util_ratio", "n1:0", NOON, 0.5),
        ("power_watts", "n1:0", NOON + 15_000, 310.0),
        ("power_watts", labelled_unit({"rule": "Größe", "zone": "a"}), 0, -0.0),
    )
    request = SeriesEncoder("clusterscape_", {"cluster": "c"}).encode(batch, np.arange(4))
    assert decode(bytes(cramjam.snappy.decompress_raw(compress(request)))) == [
        (
            {"__name__": "clusterscape_power_watts", "cluster": "c", "unit": "n1:0"},
            [(NOON, 300.0), (NOON + 15_000, 310.0)],
        ),
        ({"__name__": "clusterscape_power_watts", "cluster": "c", "rule": "Größe", "zone": "a"}, [(0, -0.0)]),
        ({"__name__": "clusterscape_gpu_util_ratio", "cluster": "c", "unit": "n1:0"}, [(NOON, 0.5)]),
    ]


@given(
    st.lists(
        st.tuples(
            st.text(max_size=200).filter(lambda text: not text.startswith("{")),
            st.integers(0, 2**42 - 1),
            st.floats(allow_nan=False),
        ),
        max_size=20,
    )
)
def test_every_sample_comes_back_when_encoded(samples: list[tuple[str, int, float]]) -> None:
    batch = batch_of(*(("m", unit, at, value) for unit, at, value in samples))
    request = SeriesEncoder("", {}).encode(batch, np.arange(len(samples)))
    decoded = [(labels.get("unit", ""), at, value) for labels, points in decode(request) for at, value in points]
    assert sorted(decoded) == sorted(samples)
