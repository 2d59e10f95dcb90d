"""Numbers with the text that they have in JSON (`protocol §1.numbers`). Standard library only, because job runs use it too.

A float of Python keeps about 17 digits, and no zeros at the end. So `12345678901234567.89` and `1.10` are read as an
`ExactNumber` for types that keep all digits. Every other type, and untyped code, gets a plain float.
"""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

# The digits that every float gives back.
_SAFE_DIGITS = 15
# Nearer to zero than every bound that is a float.
_SMALLEST = Decimal("1e-999999999")


class ExactNumber(float):
    """A float that knows the text of its number in JSON. `str()` gives this text.

    Attributes:
        text: the number as JSON has it.
        exists: whether this process has read any. Most have not, and need not look for one.
    """

    __slots__ = ("text",)
    text: str
    exists: ClassVar[bool] = False

    def __new__(cls, text: str) -> "ExactNumber":
        """Read a number."""
        number = super().__new__(cls, text)
        number.text = text
        ExactNumber.exists = True
        return number

    def __str__(self) -> str:
        """The number as JSON has it."""
        return self.text

    __repr__ = __str__

    def decimal(self) -> Decimal:
        """The number with all its digits. One that is too near to zero for a decimal becomes one of the smallest."""
        try:
            return Decimal(self.text)
        except InvalidOperation:
            mantissa = Decimal(self.text.lower().partition("e")[0])
            return mantissa if mantissa == 0 else _SMALLEST.copy_sign(mantissa)

    def __reduce__(self) -> tuple[type["ExactNumber"], tuple[str]]:
        """Copies keep the text."""
        return ExactNumber, (self.text,)


def read_number(text: str) -> float:
    """The float of a number with a point or an exponent: an `ExactNumber` if a float may not give its text back.

    One that is out of the range of floats is infinite, and its text has it.
    """
    return float(text) if _is_short(text) else ExactNumber(text)


def whole(number: float) -> int | float:
    """The whole number that a number of JSON is, with all its digits; the number itself if it is none."""
    if not number.is_integer():
        return number
    if not isinstance(number, ExactNumber):
        return int(number)
    exact = number.decimal()
    integral = exact.to_integral_value()
    # Its float is finite, so the int is short. A ratio of 1e-9999999 would take seconds.
    return int(integral) if integral == exact else number


def with_decimals(value: Any) -> Any:
    """A JSON value with a `Decimal` for each number that has a text of its own. Containers are copied only for these."""
    return _mapped(value, ExactNumber.decimal)


def _is_short(text: str) -> bool:
    """Whether a number is written as every reader of floats writes it."""
    return len(text) <= _SAFE_DIGITS and text[-1] != "0" and "e" not in text and "E" not in text


class Digits:
    """The texts of the numbers of one payload that a float would not give back.

    Untyped code gets plain floats. A float that it passes on as it is, is the same object, so its text is found again.
    """

    def __init__(self) -> None:
        # The floats are kept, so that no other object gets the identity of one of them.
        self._texts: dict[int, tuple[float, str]] = {}

    def read(self, text: str) -> float:
        """The plain float of a number, whose text is noted if the float would not give it back."""
        number = float(text)
        if not _is_short(text) and repr(number) != text:
            self._texts[id(number)] = number, text
        return number

    def restored(self, value: object) -> object:
        """The value with an `ExactNumber` for each float that is one of the payload. Containers are copied only for these.

        Raises:
            RecursionError: the value is nested too deeply, or contains itself.
        """
        if not self._texts:
            return value
        match value:
            case float():
                known = self._texts.get(id(value))
                return value if known is None else ExactNumber(known[1])
            case dict():
                items = {key: self.restored(item) for key, item in value.items()}
                return items if any(items[key] is not item for key, item in value.items()) else value
            case list() | tuple():
                entries = [self.restored(item) for item in value]
                return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value
            case _:
                return value


def has_exact(value: object) -> bool:
    """Whether a JSON value has a number with a text of its own."""
    if not ExactNumber.exists:
        return False
    match value:
        case dict():
            return any(map(has_exact, value.values()))
        case list() | tuple():
            return any(map(has_exact, value))
        case _:
            return isinstance(value, ExactNumber)


def rounded(value: Any) -> Any:
    """A JSON value with plain floats. Containers are copied only for numbers that have a text of their own."""
    return _mapped(value, float)


def _mapped(value: Any, convert: Callable[[ExactNumber], Any]) -> Any:
    if not ExactNumber.exists:
        return value
    match value:
        case ExactNumber():
            return convert(value)
        case dict():
            items = {key: _mapped(item, convert) for key, item in value.items()}
            return items if any(items[key] is not item for key, item in value.items()) else value
        case list():
            entries = [_mapped(item, convert) for item in value]
            return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value
        case _:
            return value


def json_text(value: object, *, separators: tuple[str, str] = (", ", ": "), ensure_ascii: bool = True) -> str:
    """JSON of a JSON value, as `json.dumps` writes it, in which each `ExactNumber` has its own text."""
    if not ExactNumber.exists:
        return json.dumps(value, separators=separators, ensure_ascii=ensure_ascii)
    match value:
        case ExactNumber():
            return value.text
        case Mapping():
            members = (
                f"{json.dumps(key, ensure_ascii=ensure_ascii)}{separators[1]}"
                f"{json_text(item, separators=separators, ensure_ascii=ensure_ascii)}"
                for key, item in value.items()
            )
            return f"{{{separators[0].join(members)}}}"
        case list() | tuple():
            entries = (json_text(item, separators=separators, ensure_ascii=ensure_ascii) for item in value)
            return f"[{separators[0].join(entries)}]"
        case _:
            return json.dumps(value, ensure_ascii=ensure_ascii)


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(each, other[key]) for key, each in one.items())
    if isinstance(one, ExactNumber) or isinstance(other, ExactNumber):
        return bool(_exact(one) == _exact(other))
    return bool(one == other)


def _exact(value: Any) -> Any:
    match value:
        case ExactNumber():
            return value.decimal()
        case float():
            return Decimal(repr(value))
        case _:
            return value
