"""The annotations of classes, with arguments in the place of type variables: the field `v: T` of `Box[int]` is an `int`."""

import types
import typing
from collections.abc import Mapping
from typing import Any

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
