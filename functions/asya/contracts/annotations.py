"""Makes the codec of an annotation."""

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Any

from asya.contracts.codec import AnyCodec, Codec
from asya.contracts.containers import ArrayCodec, IntegerKey, ObjectCodec, TupleCodec, UnionCodec
from asya.contracts.generics import bound_of, hints_of, substituted
from asya.contracts.libraries import MsgspecCodec, PydanticCodec
from asya.contracts.records import Field, RecordCodec
from asya.contracts.scalars import BOOLEAN, INTEGER, NULL, NUMBER, STRING, TEXTS, BytesCodec, ChoiceCodec, TextCodec

_ANY = AnyCodec()
_UNKNOWN = AnyCodec(known=False)
_SCALARS: dict[Any, Codec] = {
    Any: _ANY,
    object: _ANY,
    str: STRING,
    int: INTEGER,
    float: NUMBER,
    bool: BOOLEAN,
    None: NULL,
    type(None): NULL,
    bytes: BytesCodec(),
    dict: ObjectCodec(_ANY),
    list: ArrayCodec(_ANY),
    tuple: ArrayCodec(_ANY, tuple),
    set: ArrayCodec(_ANY, set),
    frozenset: ArrayCodec(_ANY, frozenset),
    **TEXTS,
}
_ARRAYS: dict[Any, Any] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    set: set,
    collections.abc.Set: set,
    frozenset: frozenset,
}
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_WRAPPERS = (typing.Final, typing.Required, typing.NotRequired, getattr(typing, "ReadOnly", None))
_KEYS = (TextCodec, ChoiceCodec, PydanticCodec, MsgspecCodec)


def codec_of(annotation: Any) -> Codec:
    """The codec of an annotation. One that is not known is no contract: it accepts anything (`AnyCodec.known`)."""
    return _Types().codec(annotation)


class _Types:
    """The types of one annotation. A type may contain itself."""

    def __init__(self) -> None:
        self._records: dict[Any, RecordCodec] = {}

    def codec(self, annotation: Any) -> Codec:  # noqa: PLR0911 - one for each form of an annotation
        if isinstance(annotation, collections.abc.Hashable) and annotation in _SCALARS:
            return _SCALARS[annotation]
        if _is_pydantic(annotation):
            return PydanticCodec(annotation)
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is not None:
            return self._generic(annotation, origin, arguments)
        if hasattr(annotation, "__struct_fields__"):
            return MsgspecCodec(annotation)
        if typing.is_typeddict(annotation):
            return self._typed_dict(annotation)
        if dataclasses.is_dataclass(annotation):
            return self._dataclass(annotation)
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return ChoiceCodec.of(tuple(annotation))
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.codec(annotation.__supertype__)
        if hasattr(annotation, "__value__"):  # `type Name = …`
            return self.codec(annotation.__value__)
        if isinstance(annotation, typing.TypeVar):
            return self.codec(bound_of(annotation))
        if annotation in _OBJECTS:
            return self.codec(dict)
        return self.codec(list) if annotation in _ARRAYS else _UNKNOWN

    def _generic(  # noqa: PLR0911 - as above
        self, annotation: Any, origin: Any, arguments: tuple[Any, ...]
    ) -> Codec:
        if origin is typing.Annotated:
            return self._annotated(annotation, arguments)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin is typing.Literal:
            return ChoiceCodec.of(arguments)
        if origin in _WRAPPERS:
            return self.codec(arguments[0])
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return ArrayCodec(self.codec(arguments[0]), tuple)
            return TupleCodec(tuple(self.codec(each) for each in arguments))
        if origin in _ARRAYS:
            return ArrayCodec(self.codec(arguments[0]), _ARRAYS[origin])
        if origin in _OBJECTS:
            return ObjectCodec(self.codec(arguments[1]), self._key(arguments[0]))
        return self._generic_class(annotation, origin, arguments)

    def _generic_class(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Codec:
        """The codec of a class with arguments for its type variables, such as `Box[int]`."""
        if _is_pydantic(origin):
            return PydanticCodec(annotation)
        if hasattr(origin, "__struct_fields__"):
            return MsgspecCodec(annotation)
        if typing.is_typeddict(origin):
            return self._typed_dict(annotation)
        if dataclasses.is_dataclass(origin):
            return self._dataclass(annotation)
        if hasattr(origin, "__value__"):  # `type Name[T] = …`
            return self.codec(substituted(origin.__value__, dict(zip(origin.__type_params__, arguments, strict=False))))
        return _UNKNOWN

    def _annotated(self, annotation: Any, arguments: tuple[Any, ...]) -> Codec:
        modules = {type(each).__module__.partition(".")[0] for each in arguments[1:]}
        if modules & {"pydantic", "annotated_types"}:
            return PydanticCodec(annotation)
        return MsgspecCodec(annotation) if "msgspec" in modules else self.codec(arguments[0])

    def _union(self, arguments: tuple[Any, ...]) -> Codec:
        options = tuple(self.codec(each) for each in arguments)
        unknown = next((option for option in options if isinstance(option, AnyCodec)), None)
        if unknown is not None:
            return unknown
        # A string fits `str` as it is, and a number fits Decimal; more special types come first.
        return UnionCodec(tuple(sorted(options, key=lambda option: option in (STRING, NUMBER))))

    def _key(self, annotation: Any) -> Codec | None:
        """The codec of keys, which are strings in JSON; None for those that may be any string."""
        codec = self.codec(annotation)
        if codec is INTEGER:
            return IntegerKey()
        return codec if isinstance(codec, _KEYS) else None

    def _dataclass(self, kind: Any) -> Codec:
        if kind not in self._records:
            hints = hints_of(kind)
            if hints is None:
                return _UNKNOWN
            made = typing.get_origin(kind) or kind
            self._records[kind] = record = RecordCodec(kind, lambda values: made(**values))
            record.fields = tuple(
                Field(field.name, self.codec(hints[field.name]), required=_has_no_default(field), given=True)
                for field in dataclasses.fields(made)
                if field.init
            )
        return self._records[kind]

    def _typed_dict(self, kind: Any) -> Codec:
        if kind not in self._records:
            hints = hints_of(kind)
            if hints is None:
                return _UNKNOWN
            made = typing.get_origin(kind) or kind
            # What a TypedDict with `total=False` names is a part of what the object has.
            self._records[kind] = record = RecordCodec(kind, dict, is_open=not made.__total__)
            required = made.__required_keys__
            record.fields = tuple(
                Field(name, self.codec(hint), required=name in required, given=name in required)
                for name, hint in hints.items()
            )
        return self._records[kind]


def _is_pydantic(annotation: Any) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "__pydantic_validator__")


def _has_no_default(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
