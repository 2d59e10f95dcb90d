"""The contract of a function: what its annotations say of its payload and of its result."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asya.contracts.annotations import codec_of
from asya.contracts.codec import AnyCodec, Codec, Schema, SchemaContext
from asya.contracts.containers import ArrayCodec
from asya.contracts.errors import ContractError, mismatch
from asya.contracts.signature import SignatureError, annotated_part, check_one_argument, signature_of

_GENERATORS = (
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterable,
)
_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_PAYLOAD = "payload"
_RESULT = "result"


@dataclass(frozen=True, slots=True)
class Key:
    """A parameter that is a key of the payload."""

    name: str
    codec: Codec
    required: bool


@dataclass(frozen=True, slots=True)
class Contract:
    """The types of a function.

    Attributes:
        payload: the type of the only parameter; None if it has none, and for several parameters.
        keys: the parameters that are keys of the payload; None if one parameter is the whole payload.
        result: the type of each frame's payload; None without a type.
    """

    payload: Codec | None = None
    keys: tuple[Key, ...] | None = None
    result: Codec | None = None

    @property
    def has_decimals(self) -> bool:
        """Whether payloads have decimals, which need the digits of numbers (`asya.protocol.numbers`)."""
        codecs = [key.codec for key in self.keys or ()] if self.payload is None else [self.payload]
        return any(codec.has_decimals() for codec in codecs)

    def arguments(self, payload: Any) -> Any:
        """The argument of a function of one parameter, or the arguments by name.

        Raises:
            ContractError: the payload does not fit; the message names the field.
        """
        if self.keys is None:
            return payload if self.payload is None else self.payload.load(payload, _PAYLOAD)
        if not isinstance(payload, dict):
            raise mismatch(_PAYLOAD, f"an object with {', '.join(key.name for key in self.keys)}", payload)
        arguments: dict[str, Any] = {}
        for key in self.keys:
            if key.name in payload:
                arguments[key.name] = key.codec.load(payload[key.name], f"{_PAYLOAD}.{key.name}")
            elif key.required:
                raise ContractError(f"{_PAYLOAD}.{key.name}: missing")
        return arguments

    def dumped(self, value: Any) -> Any:
        """The JSON value of a result.

        Raises:
            ContractError: the result does not fit; the message names the field.
        """
        return value if self.result is None else self.result.dump(value, _RESULT)

    def input_schema(self) -> Schema | None:
        """The JSON Schema of payloads; None if the function says nothing of them."""
        context = SchemaContext(output=False)
        if self.keys is None:
            return None if self.payload is None else _whole(self.payload.schema(context), context)
        schema: Schema = {
            "type": "object",
            "properties": {key.name: key.codec.schema(context) for key in self.keys},
            "required": [key.name for key in self.keys if key.required],
        }
        return _whole(schema, context)

    def output_schema(self) -> Schema | None:
        """The JSON Schema of results; None if the function says nothing of them."""
        context = SchemaContext(output=True)
        return None if self.result is None else _whole(self.result.schema(context), context)

    def unions(self) -> list[list[Schema]]:
        """The schemas of the options of each union, as results give them, where two or more of them are classes."""
        context = SchemaContext(output=True)
        keys = [key.codec for key in self.keys or ()]
        for codec in (self.payload, *keys, self.result):
            if codec is not None:
                codec.schema(context)
        return [[_whole(each, context) for each in options] for options in context.unions if len(options) > 1]


def input_schema(annotation: Any) -> Schema:
    """The JSON Schema of a type as an input."""
    context = SchemaContext(output=False)
    return _whole(codec_of(annotation).schema(context), context)


def contract_of(function: Callable[..., Any], *, given: int = 0, lists_fan_out: bool = False) -> Contract:
    """The contract of a function.

    Args:
        function: a function, a method or a callable object.
        given: how many of its first parameters are no part of the payload, such as the Spark session of a job.
        lists_fan_out: whether each item of a returned list is a result.

    Raises:
        SignatureError: the function cannot be called with a payload.
    """
    signature = signature_of(function)
    if signature is None:
        return Contract()
    hints = _hints(function)
    parameters = list(signature.parameters.values())[given:]
    codecs = {each.name: codec_of(hints[each.name]) for each in parameters if each.name in hints}
    keys = [each for each in parameters if _is_key(each, codecs.get(each.name))]
    result = _result(function, hints["return"], lists_fan_out=lists_fan_out) if "return" in hints else None
    if len(keys) > 1 and codecs:
        return Contract(None, tuple(_key(each, codecs) for each in keys), result)
    check_one_argument(signature, given)
    only = parameters[0] if parameters and parameters[0].kind not in _VARIADIC else None
    payload = codecs.get(only.name) if only is not None else None
    return Contract(payload if _known(payload) else None, None, result)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = annotated_part(function)
    if not getattr(target, "__annotations__", None):
        return {}
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}  # annotations that cannot be resolved at run time are no contract


def _is_key(parameter: inspect.Parameter, codec: Codec | None) -> bool:
    """Whether a parameter is a key. One with a default is none if its type is none of JSON: it is for tests."""
    if parameter.kind in _VARIADIC:
        return False
    return parameter.default is parameter.empty or _known(codec)


def _known(codec: Codec | None) -> bool:
    return codec is not None and not (isinstance(codec, AnyCodec) and not codec.known)


def _key(parameter: inspect.Parameter, codecs: dict[str, Codec]) -> Key:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise SignatureError(
            f"has the positional-only parameter {parameter.name!r}, which cannot be a key of the payload"
        )
    codec = codecs.get(parameter.name, AnyCodec())
    return Key(parameter.name, codec, required=parameter.default is parameter.empty)


def _result(function: Callable[..., Any], annotation: Any, *, lists_fan_out: bool) -> Codec | None:
    annotation = _frame_type(function, annotation)
    codec = codec_of(annotation)
    if lists_fan_out and isinstance(codec, ArrayCodec):
        codec = codec.item
    return codec if _known(codec) else None


def _frame_type(function: Callable[..., Any], annotation: Any) -> Any:
    """The type of each frame: what a coroutine returns, and what a generator yields. `None` gives no frame."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _AWAITABLES:
        return _frame_type(function, arguments[-1])
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if origin in _GENERATORS or (yields and origin is collections.abc.Iterable):
        return _of_frames(arguments[0], yields=True)
    return Any if yields or annotation in _GENERATORS else _of_frames(annotation, yields=False)


def _of_frames(annotation: Any, *, yields: bool) -> Any:
    """The type without what is no payload: `None`, a fan-out, and the commands that a generator yields."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        options = [each for each in typing.get_args(annotation) if not _is_no_payload(each, yields=yields)]
        return typing.Union[tuple(options)] if options else Any  # noqa: UP007 - the options are not known here
    return Any if _is_no_payload(annotation, yields=yields) else annotation


def _is_no_payload(annotation: Any, *, yields: bool) -> bool:
    is_command = yields and (annotation is tuple or typing.get_origin(annotation) is tuple)
    return annotation in (None, type(None)) or is_command or getattr(annotation, "__name__", "") == "FanOut"


def _whole(schema: Schema, context: SchemaContext) -> Schema:
    """A schema with its definitions. What a reference at its top refers to takes its place."""
    definitions = context.definitions
    if set(schema) == {"$ref"}:
        name = schema["$ref"].rpartition("/")[2]
        rest = {key: each for key, each in definitions.items() if key != name}
        # A type that contains itself stays a definition too.
        kept = definitions if f"#/$defs/{name}" in _references([definitions[name], rest]) else rest
        return {**definitions[name], **({"$defs": kept} if kept else {})}
    return {**schema, **({"$defs": definitions} if definitions else {})}


def _references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(_references(each) for each in schema.values()))
    return set().union(*(_references(each) for each in schema)) if isinstance(schema, list) else set()
