"""Reads the plain values of a mesh file into its sections, by models of pydantic that are made from them.

A section is a frozen `msgspec.Struct`. It declares each key with its type, default and bounds (`msgspec.Meta`), and the text
below a key describes it. Functions read some sections in the actor table, and their layer has no pydantic. So the models of
pydantic, which finds all mistakes at once, are made here.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial, reduce
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic.json_schema import GenerateJsonSchema

from asya.protocol.mesh_keys import After, Form, NoKey
from asya_infra.mesh_file.forms import FORMS

AnyStruct = TypeVar("AnyStruct", bound=Struct)
_BOUNDS = ("gt", "ge", "lt", "le", "pattern", "min_length", "max_length")
_WHOLE_NAMES = {"PauseField"}


Written = Annotated[Mapping[str, Any], NoKey()]
"""The mapping in the file that a section is read from, for checks that ask which of its keys are there. No key itself."""


class Completed:
    """A section whose defaults depend on other keys."""

    def completed(self, written: Mapping[str, Any]) -> Self:
        """Return the section with the defaults of the keys that are not written."""
        raise NotImplementedError


@cache
def keys_of(section: type[Struct]) -> dict[str, FieldInfo]:
    """Return the fields of a section by the key in the file, in the order of the schema."""
    keys: list[str] = []
    found: dict[str, FieldInfo] = {}
    place: int | None = None
    for field in msgspec.structs.fields(section):
        marks = get_args(field.type)[1:] if get_origin(field.type) is Annotated else ()
        if NoKey() in marks:
            continue
        place = next((keys.index(mark.key) + 1 if mark.key else 0 for mark in marks if isinstance(mark, After)), place)
        keys.insert(len(keys) if place is None else place, field.encode_name)
        place = None if place is None else place + 1
        found[field.encode_name] = field
    return {key: found[key] for key in keys}


def read_section(section: type[AnyStruct], values: Any) -> AnyStruct:
    """Read a section.

    Raises:
        pydantic.ValidationError: with all mistakes.
    """
    result: AnyStruct = _adapter(section).validate_python(values)
    return result


def shared_fields(kind: type[AnyStruct], section: AnyStruct) -> dict[str, Any]:
    """Return the fields that a section of the file shares with the table, by their names.

    Args:
        kind: the class that declares them.
        section: an instance of it, which may have further fields.
    """
    return {name: getattr(section, name) for name in kind.__struct_fields__}


def plain(value: Any) -> Any:
    """Return a section as JSON: mappings by the keys of the file, and lists."""
    if isinstance(value, Struct):
        return {key: plain(getattr(value, field.name)) for key, field in keys_of(type(value)).items()}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def json_schema(section: type[Struct], generator: type[GenerateJsonSchema] = GenerateJsonSchema) -> dict[str, Any]:
    """Return the JSON Schema of a section, with what its source says of each key."""
    return _model(section, described=True).model_json_schema(by_alias=True, schema_generator=generator)


def descriptions(section: type[Struct]) -> dict[str, str]:
    """Return what the source says below each field of a section, those of its bases included, or else what its type says.

    Links are those of docs/reference/mesh-file.md.
    """
    marks = {field.name: get_args(field.type)[1:] for field in msgspec.structs.fields(section)}
    found = {
        name: mark.description
        for name, each in marks.items()
        for mark in each
        if isinstance(mark, Meta) and mark.description is not None
    }
    for base in reversed(section.__mro__):
        if issubclass(base, Struct) and base is not Struct:
            source = _classes(base.__module__).get(base.__name__)
            found |= dict(_below_fields(source)) if source is not None else {}
    return found


def without_links(text: str) -> str:
    """Return a description for places that have no links: with their texts alone, in one line."""
    return " ".join(re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text).split())


def prepare(kind: Any) -> None:
    """Make the models of a type now, because its module may not stay imported."""
    for described in (False, True):
        _annotation(kind, described=described)


def _as_given(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    validate(value)
    return value


# The library makes a plain float of an `ExactNumber`.
_JSON = Annotated[JsonValue, WrapValidator(_as_given)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


@cache
def _adapter(section: type[Struct]) -> TypeAdapter[Any]:
    return TypeAdapter(_annotation(section, described=False))


@cache
def _model(section: type[Struct], *, described: bool) -> type[BaseModel]:
    """Make the model of a section. Its fields end with `_`, because models have methods such as `copy`."""
    texts = descriptions(section) if described else {}
    definitions: dict[str, Any] = {
        f"{field.name}_": (
            _annotation(field.type, described=described),
            Field(
                alias=key,
                description=without_links(texts[field.name]) if field.name in texts else None,
                **_default(field),
                **_bounds(field.type),
            ),
        )
        for key, field in keys_of(section).items()
    }
    return create_model(_title(section), __base__=_Strict, __doc__=section.__doc__, **definitions)


def _title(section: type[Struct]) -> str:
    """Return the name of a section in the schema; the table has shorter names."""
    name = section.__name__
    is_shared = section.__module__.startswith("asya.")
    return f"{name}Section" if is_shared and name not in _WHOLE_NAMES else name


def _default(field: FieldInfo) -> dict[str, Any]:
    if field.default_factory is not msgspec.NODEFAULT:
        return {"default": field.default_factory()}
    if field.default is msgspec.NODEFAULT:
        return {}
    # Each key of a section has its own default, so the schema needs none for the section.
    return (
        {"default_factory": lambda: field.default} if isinstance(field.default, Struct) else {"default": field.default}
    )


def _annotation(kind: Any, *, described: bool) -> Any:
    """Return a type for pydantic: with models for sections, and with its own marks for those of msgspec."""
    inner = partial(_annotation, described=described)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        marks = [each for mark in arguments[1:] for each in _marks(mark)]
        return Annotated[inner(arguments[0]), *marks] if marks else inner(arguments[0])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return Annotated[_model(kind, described=described), WrapValidator(partial(_build, kind))]
    if kind is object:
        return _JSON
    if origin in (tuple, dict):
        return origin[tuple(each if each is ... else inner(each) for each in arguments)]
    if origin in (Union, UnionType):
        return reduce(or_, (_option(each, inner(each)) for each in arguments))
    return kind


def _marks(mark: Any) -> tuple[Any, ...]:
    """Return a mark for pydantic. Bounds are arguments of `Field`."""
    if isinstance(mark, Form):
        return FORMS[mark.name]
    return () if isinstance(mark, Meta | After | NoKey) else (mark,)


def _option(kind: Any, annotation: Any) -> Any:
    """Return an option of a union for pydantic, with its own bounds."""
    bounds = _bounds(kind)
    if get_args(kind) and get_args(kind)[0] is float:
        # Equal marks are one object for `typing`, so 1 may stand for 1.0. Messages tell durations by it.
        bounds |= {name: float(bounds[name]) for name in ("gt", "ge", "lt", "le") if name in bounds}
    return Annotated[annotation, Field(**bounds)] if bounds else annotation


def _bounds(kind: Any) -> dict[str, Any]:
    """Return the bounds of a type as arguments of pydantic's `Field`."""
    found: dict[str, Any] = {}
    for mark in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        if isinstance(mark, Meta):
            found |= {name: value for name in _BOUNDS if (value := getattr(mark, name)) is not None}
            found |= {"json_schema_extra": mark.extra_json_schema} if mark.extra_json_schema else {}
    return found


def _build(section: type[Struct], value: Any, validate: ValidatorFunctionWrapHandler) -> Struct:
    """Make a section of the model that pydantic has validated."""
    model = validate(value)
    fields = {field.name: getattr(model, f"{field.name}_") for field in keys_of(section).values()}
    if "written" in section.__struct_fields__:
        fields["written"] = value
    built = section(**fields)
    return built.completed(value) if isinstance(built, Completed) else built


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(inspect.getfile(sys.modules[module])).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _below_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
