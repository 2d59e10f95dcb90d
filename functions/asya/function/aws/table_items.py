"""Keys and items of DynamoDB as Python values.

boto3's own converter would add its import to each cold start.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Value: TypeAlias = (
    "str | bool | int | float | Decimal | bytes | Set[str] | Set[int] | Sequence[Value] | Mapping[str, Value] | None"
)
"""What an attribute can be. A number that was read is an int or a Decimal, so it is exact."""
D = TypeVar("D")
E = TypeVar("E", str, int, float)
T = TypeVar("T")

_REQUIRED: Any = object()
_LETTERS: dict[type, str] = {str: "S", int: "N", float: "N"}


class Key(NamedTuple):
    """The key of an item; all tables of a mesh have these two attributes."""

    pk: str
    sk: str

    def encoded(self) -> "dict[str, AttributeValueTypeDef]":
        """The key as DynamoDB takes it."""
        return {"pk": {"S": self.pk}, "sk": {"S": self.sk}}


class Item(Mapping[str, Value]):
    """An item of a table, or a map in it; one that does not exist is empty.

    A method reads an attribute whose type is known.

    Raises:
        KeyError: the attribute is missing, and there is no default.
        ValueError: it has another type.
    """

    __slots__ = ("_attributes",)

    def __init__(self, attributes: Mapping[str, Any] | None = None) -> None:
        """Wrap the attributes as DynamoDB sends them: in answers, and in the events of a table's stream."""
        self._attributes = attributes or {}

    def __getitem__(self, name: str) -> Value:
        return _decoded(self._attributes[name])

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    @property
    def key(self) -> Key:
        """The key of the item."""
        return Key(self.text("pk"), self.text("sk"))

    def text(self, name: str, default: D = _REQUIRED) -> str | D:
        """A text."""
        return self._read(name, "S", default, str)

    def integer(self, name: str, default: D = _REQUIRED) -> int | D:
        """A whole number."""
        return self._read(name, "N", default, int)

    def number(self, name: str, default: D = _REQUIRED) -> float | D:
        """A number."""
        return self._read(name, "N", default, float)

    def flag(self, name: str, default: D = _REQUIRED) -> bool | D:
        """A truth value."""
        return self._read(name, "BOOL", default, bool)

    def data(self, name: str, default: D = _REQUIRED) -> bytes | D:
        """Bytes."""
        return self._read(name, "B", default, bytes)

    def texts(self, name: str) -> frozenset[str]:
        """A set of texts; a missing one is empty."""
        return self._read(name, "SS", frozenset(), frozenset)

    def integers(self, name: str) -> frozenset[int]:
        """A set of whole numbers; a missing one is empty."""
        return self._read(name, "NS", frozenset(), lambda members: frozenset(map(int, members)))

    def list_of(self, kind: type[E], name: str) -> list[E]:
        """A list whose members have one type; a missing one is empty."""
        letter = _LETTERS[kind]
        return self._read(name, "L", [], lambda members: [kind(member[letter]) for member in members])

    def map(self, name: str) -> "Item":
        """A map; a missing one is empty."""
        return self._read(name, "M", Item(), Item)

    def _read(self, name: str, letter: str, default: D, convert: Callable[[Any], T]) -> T | D:
        value = self._attributes.get(name)
        if value is None:
            if default is _REQUIRED:
                raise KeyError(name)
            return default
        if letter not in value:
            raise ValueError(f"the attribute {name!r} has the type {next(iter(value))}, not {letter}")
        return convert(value[letter])


def encoded(value: Value) -> "AttributeValueTypeDef":
    """A value as DynamoDB takes it.

    Raises:
        ValueError: DynamoDB has no such number or set.
        TypeError: DynamoDB has no such type.
    """
    encode = _ENCODERS.get(type(value)) or next(
        (_ENCODERS[base] for base in type(value).__mro__ if base in _ENCODERS), None
    )
    if encode is None:
        raise TypeError(f"DynamoDB has no attributes of the type {type(value).__name__}")
    return cast("AttributeValueTypeDef", encode(value))


def is_nothing(value: Value) -> bool:
    """Whether an attribute with this value is left out: None, and an empty set, which DynamoDB does not have."""
    return value is None or (isinstance(value, Set) and not value)


def _number(value: float | Decimal) -> dict[str, str]:
    if not math.isfinite(value):
        raise ValueError(f"DynamoDB has no number {value}")
    return {"N": str(value)}


def _set(value: Set[str] | Set[int]) -> dict[str, list[str]]:
    if not value:
        raise ValueError("DynamoDB has no empty sets")
    return {"SS" if isinstance(next(iter(value)), str) else "NS": list(map(str, sorted(value)))}


_ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    str: lambda value: {"S": value},
    bool: lambda value: {"BOOL": value},
    int: lambda value: {"N": str(value)},
    float: _number,
    Decimal: _number,
    bytes: lambda value: {"B": value},
    Set: _set,
    set: _set,
    frozenset: _set,
    list: lambda value: {"L": [encoded(each) for each in value]},
    tuple: lambda value: {"L": [encoded(each) for each in value]},
    dict: lambda value: {"M": {name: encoded(each) for name, each in value.items()}},
}


def _exact(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


_DECODERS: dict[str, Callable[[Any], Value]] = {
    "S": str,
    "BOOL": bool,
    "N": _exact,
    "B": bytes,
    "SS": frozenset,
    "NS": lambda members: frozenset(map(int, members)),
    "L": lambda members: [_decoded(each) for each in members],
    "M": lambda members: {name: _decoded(each) for name, each in members.items()},
}


def _decoded(value: Mapping[str, Any]) -> Value:
    ((letter, content),) = value.items()
    if letter not in _DECODERS:
        raise ValueError(f"no table of a mesh has attributes of the type {letter}")
    return _DECODERS[letter](content)
