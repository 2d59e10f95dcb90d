"""Parses legacy values: durations of Go, quantities of Kubernetes, flags as text."""

import math
import re
from typing import Any

from asya_infra.mesh_file.units import format_duration

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+", re.ASCII)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|Ki|Mi|Gi|Ti|k|M|G|T)?", re.ASCII)
_FACTORS = {
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}
_MEGABYTE = 2**20


def as_duration(text: Any) -> str:
    """Convert a duration of Go (`5m0s`, `1h30m`, `90s`) to the form of the mesh file.

    Raises:
        ValueError: the text is not a duration.
    """
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError(f"should be a duration such as 5m0s or 90s; got {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return format_duration(round(seconds, 3))


def as_flag(value: Any) -> bool:
    """Parse `true` or `false`, quoted or not.

    Raises:
        ValueError: the value is not a flag.
    """
    text = str(value).strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise ValueError(f"should be true or false; got {value!r}")
    return text in ("true", "1")


def as_megabytes(quantity: Any) -> int:
    """Parse an amount of memory (`128Mi`, `1Gi`, `512M`) in megabytes, rounded up.

    Raises:
        ValueError: the text is not an amount of memory.
    """
    return math.ceil(_number(quantity, "an amount of memory such as 128Mi or 1Gi") / _MEGABYTE)


def as_cores(quantity: Any) -> float:
    """Parse an amount of CPU (`200m`, `0.5`, `2`) in cores.

    Raises:
        ValueError: the text is not an amount of CPU.
    """
    return _number(quantity, "an amount of CPU such as 200m or 0.5")


def _number(quantity: Any, expected: str) -> float:
    match = _QUANTITY.fullmatch(str(quantity)) if isinstance(quantity, str | int | float) else None
    if match is None or isinstance(quantity, bool):
        raise ValueError(f"should be {expected}; got {quantity!r}")
    return float(match[1]) * _FACTORS[match[2] or ""]
