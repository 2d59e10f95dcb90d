"""Durations and sizes in a mesh file: `500ms`, `30s`, `10m`, `2h`, `7d`; `512` (megabytes), `256k`, `4g`."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic.config import JsonDict

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"k": 1024, "m": 1024**2, "g": 1024**3}
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9]{1,9})([kmg]?)", re.IGNORECASE | re.ASCII)


def parse_duration(text: Any) -> float:
    """Parse a duration to seconds.

    Raises:
        ValueError: the text is not a duration such as `500ms`, `30s`, `10m`, `2h` or `7d`.
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"should be a duration such as 500ms, 30s, 10m, 2h or 7d; got {text!r}")
    return int(match[1]) * _SECONDS[match[2]]


def parse_bytes(text: Any) -> int:
    """Parse a size to bytes. A number without a unit is in megabytes.

    Raises:
        ValueError: the text is not a size such as `512`, `256k` or `4g`.
    """
    plain = str(text) if isinstance(text, int) and not isinstance(text, bool) else text
    match = _SIZE.fullmatch(plain) if isinstance(plain, str) else None
    if match is None:
        raise ValueError(f"should be a size such as 512 (megabytes), 256k or 4g; got {text!r}")
    return int(match[1]) * _BYTES[match[2].lower() or "m"]


def parse_megabytes(text: Any) -> int:
    """Parse a size to megabytes.

    Raises:
        ValueError: as in `parse_bytes`, or the size is not a whole number of megabytes.
    """
    size = parse_bytes(text)
    if size % _BYTES["m"]:
        raise ValueError(f"should be a whole number of megabytes; got {text!r}")
    return size // _BYTES["m"]


def parse_lifetime(text: Any) -> float | None:
    """Parse a retention to seconds; `none` becomes None, which means forever.

    Raises:
        ValueError: as in `parse_duration`.
    """
    return None if text in (None, "none") else parse_duration(text)


def format_duration(seconds: float) -> str:
    """Return a duration in its shortest form: `1500ms`, `90s`, `2h`."""
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds // _SECONDS[unit])}{unit}"
    return f"{round(seconds * 1000)}ms" if seconds else "0s"


DURATION_SCHEMA: JsonDict = {
    "type": "string",
    "pattern": r"^[0-9]{1,9}(ms|s|m|h|d)$",
    "examples": ["500ms", "30s", "10m", "2h"],
}
SIZE_SCHEMA: JsonDict = {"type": ["integer", "string"], "pattern": r"^[0-9]{1,9}[kmgKMG]?$", "examples": [512, "4g"]}

Duration = Annotated[float, BeforeValidator(parse_duration), WithJsonSchema(DURATION_SCHEMA)]
Lifetime = Annotated[
    float | None,
    BeforeValidator(parse_lifetime),
    WithJsonSchema({"anyOf": [DURATION_SCHEMA, {"const": "none"}, {"type": "null"}]}),
]
Bytes = Annotated[int, BeforeValidator(parse_bytes), WithJsonSchema(SIZE_SCHEMA)]
Megabytes = Annotated[int, BeforeValidator(parse_megabytes), WithJsonSchema(SIZE_SCHEMA)]
