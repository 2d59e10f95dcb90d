"""Codecs of values that are no collections."""

import base64
import binascii
import datetime
import decimal
import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asya.contracts import forms
from asya.contracts.codec import Schema, SchemaContext, decimal_text, distance, plain
from asya.contracts.common_values import have_numbers
from asya.contracts.errors import ContractError, mismatch, shown
from asya.contracts.forms import Form
from asya.protocol.numbers import is_same, whole


@dataclass(frozen=True, slots=True)
class JsonScalar:
    """A value that JSON has itself. No value is converted: `"5"` is no number, and `1` is no boolean.

    Attributes:
        kinds: the classes of such values. A boolean is an int in Python only.
        convert: makes the value of the JSON value.
    """

    title: str
    name: str
    kinds: tuple[type, ...]
    convert: Callable[[Any], Any] = lambda value: value

    def load(self, value: Any, path: str) -> Any:
        """The value, after a check."""
        if isinstance(value, self.kinds) and (bool in self.kinds or not isinstance(value, bool)):
            try:
                return self.convert(value)
            except OverflowError:
                raise mismatch(path, "a number that a double can hold", value) from None
        raise mismatch(path, self.title, value)

    def dump(self, value: Any, path: str) -> Any:
        """The value, after a check."""
        self.load(value, path)
        return value.value if isinstance(value, enum.Enum) else value

    def distance(self, value: Any) -> float | None:
        """The distance of the class. A whole number is a float, at a distance."""
        if isinstance(value, bool) and bool not in self.kinds:
            return None
        own = distance(value, self.kinds[-1])
        others = distance(value, *self.kinds)
        return own if own is not None or others is None else others + 1

    def has_decimals(self) -> bool:
        """JSON has no decimals of its own."""
        return False

    def schema(self, context: SchemaContext) -> Schema:  # noqa: ARG002
        """The schema of the type."""
        return {"type": self.name}


STRING = JsonScalar("a string", "string", (str,))


class IntegerCodec(JsonScalar):
    """A whole number. JSON has one type of numbers, so 5.0 is one, as it is for JSON Schema."""

    def load(self, value: Any, path: str) -> Any:
        """The number, after a check."""
        return super().load(self._whole(value), path)

    def dump(self, value: Any, path: str) -> Any:
        """The number, after a check."""
        return super().dump(self._whole(value), path)

    def has_decimals(self) -> bool:
        """A whole number with a point or an exponent may have more digits than a float."""
        return True

    def _whole(self, value: Any) -> Any:
        return whole(value) if isinstance(value, float) else value


INTEGER = IntegerCodec("a whole number", "integer", (int,))
NUMBER = JsonScalar("a number", "number", (int, float), float)
BOOLEAN = JsonScalar("true or false", "boolean", (bool,))
NULL = JsonScalar("null", "null", (type(None),))


@dataclass(frozen=True, slots=True)
class TextCodec:
    """A value that travels as a string.

    Attributes:
        kind: the class of the values.
        form: the form of the strings.
        parse: makes the value of a string in the form that each library reads.
        text: the string of a value and its path.
        numbers: whether numbers are accepted, too, with all their digits.
    """

    kind: type
    form: Form
    parse: Callable[[str], Any]
    text: Callable[[Any, str], str]
    numbers: bool = False

    def load(self, value: Any, path: str) -> Any:
        """The value of a string."""
        is_number = self.numbers and isinstance(value, int | float) and not isinstance(value, bool)
        try:
            text = str(value) if is_number else value
            if not isinstance(text, str):
                raise mismatch(path, self.form.title, value)
            return self.parse(self.form.read(text))
        except ContractError:
            raise
        except (ValueError, ArithmeticError):
            raise mismatch(path, self.form.title, value) from None

    def dump(self, value: Any, path: str) -> Any:
        """The string of a value."""
        # Each datetime is a date in Python, and none in JSON.
        if not isinstance(value, self.kind) or (self.kind is datetime.date and isinstance(value, datetime.datetime)):
            value = self.load(value, path)
        return self.text(value, path)

    def distance(self, value: Any) -> float | None:
        """The distance of the class. Each datetime is a date in Python, and none here."""
        is_other = self.kind is datetime.date and isinstance(value, datetime.datetime)
        return None if is_other else distance(value, self.kind)

    def has_decimals(self) -> bool:
        """Whether it is that of decimals."""
        return self.numbers

    def schema(self, context: SchemaContext) -> Schema:
        """The schema of the strings."""
        accepts_numbers = self.numbers and not context.output
        return {"type": ["string", "number"] if accepts_numbers else "string", **self.form.schema()}


def _iso(value: Any, path: str) -> str:  # noqa: ARG001
    return forms.iso_text(value)


TEXTS: dict[type, TextCodec] = {
    codec.kind: codec
    for codec in (
        TextCodec(decimal.Decimal, forms.DECIMAL, decimal.Decimal, decimal_text, numbers=True),
        TextCodec(uuid.UUID, forms.UUID, uuid.UUID, lambda value, _: str(value)),
        TextCodec(datetime.date, forms.DATE, datetime.date.fromisoformat, lambda value, _: value.isoformat()),
        TextCodec(datetime.datetime, forms.DATE_TIME, datetime.datetime.fromisoformat, _iso),
        TextCodec(datetime.time, forms.TIME, datetime.time.fromisoformat, _iso),
        TextCodec(datetime.timedelta, forms.DURATION, forms.duration_of, lambda value, _: forms.duration_text(value)),
    )
}


class BytesCodec:
    """Bytes, which travel in base64."""

    def load(self, value: Any, path: str) -> bytes:
        """The bytes of a string."""
        try:
            return base64.b64decode(forms.BASE64.read(value), validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise mismatch(path, forms.BASE64.title, value) from None

    def dump(self, value: Any, path: str) -> str:
        """The string of bytes."""
        data = value if isinstance(value, bytes | bytearray) else self.load(value, path)
        return base64.b64encode(data).decode("ascii")

    def distance(self, value: Any) -> float | None:
        """The distance of the class."""
        return distance(value, bytes, bytearray)

    def has_decimals(self) -> bool:
        """Bytes are none."""
        return False

    def schema(self, context: SchemaContext) -> Schema:  # noqa: ARG002
        """The schema of the strings."""
        return {"type": "string", "contentEncoding": "base64", "pattern": forms.BASE64.schema()["pattern"]}


class ChoiceCodec:
    """One of the values of an enum or of a `Literal`."""

    def __init__(self, members: dict[Any, Any] | list[tuple[Any, Any]]) -> None:
        """Take the JSON value and the value of each member."""
        self._members = list(members.items()) if isinstance(members, dict) else members

    @classmethod
    def of(cls, values: tuple[Any, ...]) -> "ChoiceCodec":
        """The codec of members of an enum, or of the values of a `Literal`."""
        return cls([(plain(value), value) for value in values])

    def load(self, value: Any, path: str) -> Any:
        """The member with this JSON value."""
        for text, member in self._members:
            if is_same(text, value):
                return member
        raise mismatch(path, " or ".join(shown(text) for text, _ in self._members), value)

    def dump(self, value: Any, path: str) -> Any:
        """The JSON value of a member."""
        for text, member in self._members:
            if member is value:
                return text
        return plain(self.load(plain(value, path), path))

    def distance(self, value: Any) -> float | None:
        """0 for a member, which is one by its class and its value."""
        is_member = any(type(member) is type(value) and member == value for _, member in self._members)
        return 0.0 if is_member else None

    def has_decimals(self) -> bool:
        """A number is one of the values only if all its digits are."""
        return have_numbers(text for text, _ in self._members)

    def schema(self, context: SchemaContext) -> Schema:  # noqa: ARG002
        """The schema with all values."""
        return {"enum": [text for text, _ in self._members]}
