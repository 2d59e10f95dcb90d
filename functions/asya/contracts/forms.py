r"""The forms of values that travel as strings (`protocol §6.typed.forms`).

A pattern is exact: it knows the calendar, so a validator that ignores `format` gives the same verdict as the actor. It holds to
what all engines of regular expressions read: no look-around, and no `\d`, which some of them take for any digit of Unicode.
"""

import datetime
import ipaddress
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"  # Python has no year 0
_DAY = "(?:0[1-9]|1[0-9]|2[0-8])"
_MONTH_AND_DAY = f"(?:(?:0[13578]|1[02])-31|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[1-9]|1[0-2])-{_DAY})"
_DATE = f"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP}-02-29)"
_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND = r"[0-5][0-9](?:\.[0-9]+)?"
_TIME = f"{_MINUTE}(?::{_SECOND})?"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"
_RFC_TIME = f"{_MINUTE}:{_SECOND}(?:[Zz]|[+-]{_MINUTE})"
_OF_DURATION = (
    r"T(?:[0-9]{1,9}H(?:[0-9]{1,9}M)?(?:[0-9]{1,9}(?:\.[0-9]+)?S)?|[0-9]{1,9}M(?:[0-9]{1,9}(?:\.[0-9]+)?S)?"
    r"|[0-9]{1,9}(?:\.[0-9]+)?S)"
)
# No sum of these is beyond the type of Python, and each sum in days and seconds has the last form.
_DURATION = (
    f"[+-]?P(?:[0-9]{{1,7}}W(?:[0-9]{{1,8}}D)?(?:{_OF_DURATION})?|[0-9]{{1,8}}D(?:{_OF_DURATION})?|{_OF_DURATION}"
    r"|[1-8][0-9]{8}D(?:T[0-9]{1,5}(?:\.[0-9]+)?S)?)"
)
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
_HEX = "[0-9a-fA-F]"
_BASE64 = "(?:{0}{{4}})*(?:{0}{{2}}==|{0}{{3}}=)?"

_PARTS = re.compile(
    r"([+-]?)P(?:(\d+)Y)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the strings of a type.

    Attributes:
        format: the `format` of the JSON Schema. Those that validators know keep their meaning.
        title: the form, for people.
        pattern: what a string matches as a whole; None if only `common` can tell.
        common: the same value in the form that each library reads; a ValueError refuses it.
    """

    format: str
    title: str
    pattern: str | None
    common: Callable[[str], str] = str

    def read(self, text: str) -> str:
        """The string in the form that each library reads.

        Raises:
            ValueError: it does not have this form.
        """
        if self.pattern is not None and not _compiled(self.pattern).fullmatch(text):
            raise ValueError(text)
        return self.common(text)

    def has(self, text: str) -> bool:
        """Whether a string has the form."""
        try:
            self.read(text)
        except (ValueError, ArithmeticError):
            return False
        return True

    def schema(self) -> dict[str, Any]:
        """The keywords of a JSON Schema."""
        return {"format": self.format} | ({"pattern": f"^{self.pattern}$"} if self.pattern is not None else {})


_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    if pattern not in _patterns:
        _patterns[pattern] = re.compile(pattern)
    return _patterns[pattern]


def duration_of(text: str) -> datetime.timedelta:
    """The duration of a text in ISO 8601. A year has 365 days; pydantic writes such years."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    sign, years, weeks, days, hours, minutes, seconds, fraction = found.groups()
    value = datetime.timedelta(
        days=int(years or 0) * 365 + int(weeks or 0) * 7 + int(days or 0),
        seconds=int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0),
        microseconds=int((fraction or "").ljust(6, "0")[:6]),
    )
    return -value if sign == "-" else value


def duration_text(value: datetime.timedelta) -> str:
    """A duration in ISO 8601, in days and seconds."""
    sign, value = ("-", -value) if value < datetime.timedelta(0) else ("", value)
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    time = f"T{value.seconds}{fraction}S" if value.seconds or value.microseconds else ""
    days = f"{value.days}D" if value.days or not time else ""
    return f"{sign}P{days}{time}"


def datetime_of(text: str) -> datetime.datetime:
    """The time of a text. Digits after microseconds are dropped, because the types of Python end there."""
    return datetime.datetime.fromisoformat(text.upper())


def time_of(text: str) -> datetime.time:
    """The time of day of a text."""
    return datetime.time.fromisoformat(text.upper())


def iso_text(value: datetime.datetime | datetime.time) -> str:
    """A time in ISO 8601, in UTC with `Z`, as the libraries of models write it."""
    return value.isoformat().replace("+00:00", "Z")


def _ipv6(text: str) -> str:
    if "%" in text:
        raise ValueError(text)
    return str(ipaddress.IPv6Address(text)) and text


_TIME_TITLE = "a time, such as '2026-11-24T08:30:00Z'"
_DAY_TITLE = "a time of day, such as '08:30:00'"


def _is_time(form: str, title: str, pattern: str) -> Form:
    return Form(form, title, pattern, lambda text: iso_text(datetime_of(text)))


def _is_time_of_day(form: str, title: str, pattern: str) -> Form:
    return Form(form, title, pattern, lambda text: iso_text(time_of(text)))


DATE = Form("date", "a date, such as '2026-11-24'", _DATE)
DATE_TIME = _is_time("iso8601-date-time", _TIME_TITLE, f"{_DATE}[Tt ]{_TIME}{_OFFSET}?")
AWARE_DATE_TIME = _is_time("date-time", f"{_TIME_TITLE}, with its offset", f"{_DATE}[Tt]{_RFC_TIME}")
LOCAL_DATE_TIME = _is_time(
    "iso8601-local-date-time", "a time without an offset, such as '2026-11-24T08:30:00'", f"{_DATE}[Tt ]{_TIME}"
)
DATE_TIMES = (DATE_TIME, AWARE_DATE_TIME, LOCAL_DATE_TIME)
TIME = _is_time_of_day("iso8601-time", _DAY_TITLE, f"{_TIME}{_OFFSET}?")
AWARE_TIME = _is_time_of_day("time", "a time of day with its offset, such as '08:30:00Z'", _RFC_TIME)
LOCAL_TIME = _is_time_of_day("iso8601-local-time", f"{_DAY_TITLE}, without an offset", _TIME)
TIMES = (TIME, AWARE_TIME, LOCAL_TIME)
DURATION = Form(
    "iso8601-duration",
    "a duration, such as 'P1DT2H'",
    _DURATION,
    lambda text: duration_text(duration_of(text)),
)
DECIMAL = Form("decimal", "a decimal number as a string, such as '12.30'", _DECIMAL)
UUID = Form(
    "uuid", "a UUID", f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}", lambda text: str(uuid.UUID(text))
)
BASE64 = Form("base64", "bytes in base64", _BASE64.format("[A-Za-z0-9+/]"))

FORMS: dict[str, Form] = {
    form.format: form
    for form in (
        *(DATE, DATE_TIME, AWARE_DATE_TIME, LOCAL_DATE_TIME, TIME, AWARE_TIME, LOCAL_TIME, DURATION, DECIMAL, UUID),
        *(
            Form(
                f"uuid{version}",
                f"a UUID of version {version}",
                f"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-{_HEX}{{4}}-{_HEX}{{12}}",
            )
            for version in range(1, 9)
        ),
        BASE64,
        Form("base64url", "bytes in base64 for URLs", _BASE64.format("[A-Za-z0-9_-]")),
        Form("ipv4", "an IPv4 address", None, lambda text: str(ipaddress.IPv4Address(text)) and text),
        Form("ipv6", "an IPv6 address", None, _ipv6),
    )
}
"""The forms by their `format`."""

INTEGER_KEY = "(?:0|-?[1-9][0-9]*)"
"""The keys of an object in the place of whole numbers."""
