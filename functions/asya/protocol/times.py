"""RFC 3339 times in UTC, as the status block carries them (`protocol §2`)."""

from datetime import UTC, datetime
from functools import lru_cache

import msgspec

_encoder = msgspec.json.Encoder()


def format_time(moment: datetime) -> str:
    """Microseconds, `Z`: `2025-11-18T14:30:45.123456Z`."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    text = _encoder.encode(utc)[1:-1].decode()  # ten times as fast as isoformat; leaves out microseconds that are zero
    return text if utc.microsecond else text[:-1] + ".000000Z"


@lru_cache(maxsize=1024)  # a hop reads the same deadline several times
def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time of second or finer precision into UTC.

    Raises:
        ValueError: if the text is no RFC 3339 time.
    """
    # fromisoformat reads more than RFC 3339 (weeks, bare dates, no zone); the fixed punctuation tells them apart.
    if len(text) >= len("2025-11-18T14:30:45Z") and text[4] == text[7] == "-" and text[10] == "T" and text[16] == ":":
        try:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):  # no time at all, or one that UTC puts outside of the years 1 to 9999
            pass
    raise ValueError(f"{text!r} is no RFC 3339 time such as 2025-11-18T14:30:45.123456Z")


def from_epoch_milliseconds(milliseconds: int) -> datetime:
    """SQS and Lambda speak in milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
