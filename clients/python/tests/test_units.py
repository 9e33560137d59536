"""Quantities are read as in job files."""

import datetime

import pytest

from muster import _units


@pytest.mark.parametrize("text, seconds", [
    (90, 90), (1.5, 1.5), ("90", 90), ("90s", 90), ("15m", 900), ("3.8h", 13680), ("1h30m", 5400), ("2d", 172800), ("30:00", 1800),
    ("1:30:00", 5400), ("1-12", 129600), ("1-12:00:00", 129600), (datetime.timedelta(hours=4), 14400),
])
def test_durations(text, seconds):
    found = _units.duration(text)
    assert found.seconds + found.nanos / 1e9 == seconds


@pytest.mark.parametrize("text", ["", "h", "1m1h", "1x", "-1s", -1, "1:60", "1:00:00:00", "1-24:00:00", "36501d"])
def test_bad_durations_name_the_field(text):
    with pytest.raises(ValueError, match="^time is"):
        _units.duration(text)


@pytest.mark.parametrize("text, size", [(512, 512), ("512", 512), ("64K", 64000), ("1.5G", 1500000000), ("16Gi", 16 << 30),
                                        ("32GB", 32 * 10**9), ("1Ti", 1 << 40)])
def test_sizes(text, size):
    assert _units.size(text) == size


@pytest.mark.parametrize("text", ["", "G", "1.G", "1 G", "1P", "-1", "2000Ti"])
def test_bad_sizes_name_the_field(text):
    with pytest.raises(ValueError, match="^memory is"):
        _units.size(text)


@pytest.mark.parametrize("text, kind, count", [(8, "", 8000), ("8", "", 8000), ("H100", "H100", 1000), ("H100:8", "H100", 8000),
                                               ("H100:0.5", "H100", 500), (0.5, "", 500), (0, "", 0)])
def test_gpus(text, kind, count):
    found = _units.gpus(text)
    assert (found.type, found.count_millis) == (kind, count)


@pytest.mark.parametrize("text", ["", ":8", "H100:", "H100:x", "H100:0", "H 100", "H100:0.0001", -1])
def test_bad_gpus_name_the_field(text):
    with pytest.raises(ValueError, match="^gpus is"):
        _units.gpus(text)
