"""Loads a handler by its name (`protocol §6`)."""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

Handler = Callable[[Any], Any]


class LoadError(RuntimeError):
    """A handler cannot be loaded; the message names the handler and the cause."""


def load(name: str) -> Handler:
    """Load the callable `module.function` or `module.Class.method`.

    A class is instantiated without arguments.

    Raises:
        LoadError: the module, function, class or method does not exist, or its import or constructor fails.
    """
    module_name, attributes = _split(name)
    target: Any = _imported(name, module_name)
    for depth, attribute in enumerate(attributes):
        owner = target
        try:
            target = getattr(owner, attribute)
        except AttributeError:
            where = ".".join((module_name, *attributes[:depth]))
            raise LoadError(f"handler {name!r}: {where} has no {attribute!r}") from None
        if isinstance(target, type) and depth + 1 < len(attributes):
            target = _constructed(name, target)
    if isinstance(target, type):
        raise LoadError(f"handler {name!r} is a class; name one of its methods ({name}.method)")
    if not callable(target):
        raise LoadError(f"handler {name!r} is a {type(target).__name__}, not a function")
    return target  # type: ignore[no-any-return]


def _split(name: str) -> tuple[str, list[str]]:
    """Split a name into module and attributes; the module is the longest prefix that exists."""
    parts = name.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise LoadError(f"handler {name!r} must be module.function or module.Class.method")
    for size in range(len(parts) - 1, 0, -1):
        candidate = ".".join(parts[:size])
        if _exists(candidate):
            return candidate, parts[size:]
    return parts[0], parts[1:]


def _exists(module_name: str) -> bool:
    try:
        return importlib.util.find_spec(module_name) is not None
    except ModuleNotFoundError:
        return False  # a parent is a plain module, not a package, so the rest are attributes
    except Exception as error:
        raise LoadError(f"importing a parent of {module_name!r} failed: {type(error).__name__}: {error}") from error


def _imported(name: str, module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        hint = (
            "is not in the code folder"
            if missing == module_name
            else f"imports {missing!r}, which is not installed; name its package in the requirements.txt of the code folder"
        )
        raise LoadError(f"handler {name!r}: module {module_name!r} {hint}") from error
    except Exception as error:
        raise LoadError(
            f"handler {name!r}: importing {module_name!r} failed: {type(error).__name__}: {error}"
        ) from error


def _constructed(name: str, kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        raise LoadError(
            f"handler {name!r}: {kind.__qualname__}() failed: {type(error).__name__}: {error} "
            "(a handler class is made without arguments)"
        ) from error
