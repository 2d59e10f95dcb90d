"""Makes the codec of an annotation. The field `v: T` of a generic `Box[int]` is an `int`."""

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any

from asya.contracts.codec import AnyCodec, Codec
from asya.contracts.containers import ArrayCodec, Field, IntegerKey, ObjectCodec, RecordCodec, TupleCodec, UnionCodec
from asya.contracts.libraries import MsgspecCodec, PydanticCodec
from asya.contracts.scalars import BOOLEAN, INTEGER, NULL, NUMBER, STRING, TEXTS, BytesCodec, ChoiceCodec, TextCodec

Arguments = Mapping[Any, Any]


def hints_of(kind: Any) -> dict[str, Any] | None:
    """The annotations of a class, or of a generic class with its arguments, by the names of the fields.

    None if one cannot be resolved at run time, so that the class is no contract.
    """
    made = typing.get_origin(kind) or kind
    try:
        hints = typing.get_type_hints(made, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return None
    arguments = _arguments_by_class(kind)
    own = {name: owner for owner in reversed(_ancestors(made)) for name in _own_names(owner)}
    return {name: substituted(hint, arguments.get(own.get(name), {})) for name, hint in hints.items()}


def substituted(annotation: Any, arguments: Arguments) -> Any:
    """An annotation with arguments in the place of its type variables. One without an argument stays."""
    if isinstance(annotation, typing.TypeVar):
        return arguments.get(annotation, annotation)
    if isinstance(annotation, type):  # no arguments, but those of a model of pydantic, whose `Box[T]` is a class
        known = getattr(annotation, "__pydantic_generic_metadata__", {})
        return _with(annotation, known["parameters"], arguments) if known.get("origin") else annotation
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        # Its own variables are not those of models of pydantic within it.
        return typing.Union[tuple(substituted(each, arguments) for each in inner)]  # noqa: UP007 - not known here
    if isinstance(annotation, types.GenericAlias):
        return types.GenericAlias(
            typing.cast("type", annotation.__origin__), tuple(substituted(each, arguments) for each in inner)
        )
    return _with(annotation, getattr(annotation, "__parameters__", ()), arguments)


def _with(annotation: Any, variables: tuple[Any, ...], arguments: Arguments) -> Any:
    return annotation[tuple(arguments.get(each, each) for each in variables)] if variables else annotation


def bound_of(variable: typing.TypeVar) -> Any:
    """What a type variable without an argument stands for: its default, its bound, one of its constraints, or anything."""
    default = getattr(variable, "__default__", None)
    if default is not None and default is not getattr(typing, "NoDefault", None):
        return default
    if variable.__constraints__:
        return typing.Union[variable.__constraints__]  # noqa: UP007 - the options are not known here
    return Any if variable.__bound__ is None else variable.__bound__


def _ancestors(made: Any) -> list[Any]:
    """The class and its bases. A TypedDict has no bases at run time but those that it keeps itself."""
    if not typing.is_typeddict(made):
        return [each for each in made.__mro__ if each is not object]
    bases = [typing.get_origin(each) or each for each in getattr(made, "__orig_bases__", ())]
    return [made, *(ancestor for base in bases if typing.is_typeddict(base) for ancestor in _ancestors(base))]


def _own_names(owner: Any) -> list[str]:
    """The fields that a class annotates itself. A TypedDict has those of its bases too, which come later in `_ancestors`."""
    inherited: set[str] = set()
    if typing.is_typeddict(owner):
        inherited = {name for base in _ancestors(owner)[1:] for name in base.__annotations__}
    return [name for name in getattr(owner, "__annotations__", {}) if name not in inherited]


def _arguments_by_class(kind: Any) -> dict[Any, Arguments]:
    """The arguments of a class and of each generic base: `class IntBox(Box[int])` gives `T` of `Box` the argument `int`."""
    made = typing.get_origin(kind) or kind
    variables = getattr(made, "__parameters__", ())
    found: dict[Any, Arguments] = {made: dict(zip(variables, typing.get_args(kind), strict=False))}
    for base in getattr(made, "__orig_bases__", ()):
        if (typing.get_origin(base) or base) not in (typing.Generic, made) and typing.get_args(base):
            found = {**_arguments_by_class(substituted(base, found[made])), **found}
        elif isinstance(base, type):
            found = {**_arguments_by_class(base), **found}
    return found


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
