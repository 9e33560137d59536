"""Quantities as people write them, by the rules of job files (docs/job-file.md). A bad one raises ValueError with its forms."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import Optional, Union

from google.protobuf import duration_pb2

from muster.v1 import job_spec_pb2

MAX_SECONDS = 36500 * 86400
MAX_BYTES = 1 << 50
BYTE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
TIME_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}

Time = Union[str, int, float, datetime.timedelta]
Size = Union[str, int]
Count = Union[str, int, float]


def _up(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


def duration(value: Time, field: str = "time") -> duration_pb2.Duration:
    """Seconds, a timedelta, "90s", "1h30m", "1-12:00:00"; up to 36500 days."""
    if isinstance(value, datetime.timedelta):
        nanos = (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
    elif isinstance(value, str):
        found = _nanos(value)
        if found is None:
            raise ValueError(f'{field} is "{value}"; write "90s", "15m", "1h30m", "2d", "HH:MM:SS" or "D-HH:MM:SS", or seconds')
        nanos = found
    else:
        nanos = _up(Fraction(str(value)) * 10**9)
    if not 0 <= nanos <= MAX_SECONDS * 10**9:
        raise ValueError(f"{field} is {value}; it is at most 36500 days, and not negative")
    return duration_pb2.Duration(seconds=nanos // 10**9, nanos=nanos % 10**9)


def _nanos(text: str) -> Optional[int]:
    slurm = re.fullmatch(r"(?:(\d{1,9})-(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?)|(?:(\d{1,9}):(\d{1,2})(?::(\d{1,2}))?)", text)
    if slurm:
        days, hours, minutes, seconds, first, second, third = (int(part) if part else 0 for part in slurm.groups())
        if slurm[1] is None and slurm[7] is None:  # MM:SS
            minutes, seconds = first, second
        elif slurm[1] is None:
            hours, minutes, seconds = first, second, third
        if seconds > 59 or second > 59 or (slurm[1] is not None and (hours > 23 or minutes > 59)):
            return None
        return (days * 86400 + hours * 3600 + minutes * 60 + seconds) * 10**9
    if not re.fullmatch(r"(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?|\d+(\.\d+)?", text) or not text:
        return None
    return sum(_up(Fraction(number) * TIME_UNITS[unit] * 10**9) for number, unit in re.findall(r"(\d+(?:\.\d+)?)([dhms]?)", text))


def size(value: Size, field: str = "memory") -> int:
    """Bytes, "512M", "1.5G" (powers of 1000), "16Gi" (powers of 1024), with or without a B; up to 2^50."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)(|[KMGT]i?)B?", value)
        if not match:
            raise ValueError(f'{field} is "{value}"; write bytes, or "512M", "16Gi", "32GB"')
        value = _up(Fraction(match[1]) * BYTE_UNITS[match[2]])
    if not 0 <= value <= MAX_BYTES:
        raise ValueError(f"{field} is {value} bytes; it is at most 2^50, and not negative")
    return value


def millis(value: Count, most: int, field: str) -> int:
    """A number with at most three decimals, in thousandths, 1 to `most` of them."""
    text = str(value)
    whole, _, decimals = text.partition(".")
    number = int(whole + (decimals + "000")[:3]) if re.fullmatch(r"\d{1,9}(\.\d{1,3})?", text) else 0
    if not 1 <= number <= most:
        raise ValueError(f"{field} is {value}; it is a number above 0 with at most three decimals, up to {most // 1000}")
    return number


def gpus(value: Count, field: str = "gpus") -> job_spec_pb2.GpuRequest:
    """8, "H100", "H100:8", "H100:0.5"; 0: none."""
    text = str(value)
    kind, colon, count = text.rpartition(":")
    if not colon:
        kind, count = ("", text) if re.fullmatch(r"[\d.]+", text) else (text, "1")
    if text == "0":
        return job_spec_pb2.GpuRequest()
    if (colon or kind or not text) and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}", kind):
        raise ValueError(f'{field} is "{value}"; write a count, a type, or TYPE:COUNT, as in "H100:8"')
    return job_spec_pb2.GpuRequest(type=kind, count_millis=millis(count, 1_000_000, field))
