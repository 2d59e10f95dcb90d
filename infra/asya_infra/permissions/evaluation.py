"""Evaluates statements as IAM does: an explicit denial wins, and nothing is allowed by default."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Value = str | tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """One call: the action, the resource, and the keys that conditions read."""

    action: str
    resource: str
    context: Mapping[str, Value] = field(default_factory=dict)


def is_allowed(statements: Iterable[Mapping[str, Any]], request: Request) -> bool:
    """Return whether the statements of a role allow a call."""
    effects = {statement["Effect"] for statement in statements if _applies(statement, request)}
    return effects == {"Allow"}


def _applies(statement: Mapping[str, Any], request: Request) -> bool:
    return (
        any(_like(request.action, pattern) for pattern in _listed(statement["Action"]))
        and _names(statement, request.resource)
        and all(_holds(operator, keys, request) for operator, keys in statement.get("Condition", {}).items())
    )


def _names(statement: Mapping[str, Any], resource: str) -> bool:
    excluded = statement.get("NotResource")
    if excluded is not None:
        return not any(_like(resource, pattern) for pattern in _listed(excluded))
    return any(_like(resource, pattern) for pattern in _listed(statement["Resource"]))


def _holds(operator: str, keys: Mapping[str, Any], request: Request) -> bool:
    quantifier, _, name = operator.rpartition(":")
    base = name.removesuffix("IfExists")
    if base == "Null":
        return all((key not in request.context) == (value == "true") for key, value in keys.items())
    is_negated = base in {"StringNotEquals", "StringNotLike"}
    if base not in {"ArnEquals", "StringEquals", "StringLike"} and not is_negated:
        raise NotImplementedError(f"condition operator {operator}")
    passes_without = base != name or quantifier == "ForAllValues" or (is_negated and not quantifier)
    for key, patterns in keys.items():
        value = request.context.get(key)
        if value is None:
            if not passes_without:
                return False
            continue
        values = (value,) if isinstance(value, str) else value
        matches = [any(_like(each, pattern) for pattern in _listed(patterns)) != is_negated for each in values]
        if not (any(matches) if quantifier == "ForAnyValue" else all(matches)):
            return False
    return True


def _like(value: str, pattern: str) -> bool:
    return value == pattern or (
        ("*" in pattern or "?" in pattern) and _expression(pattern).fullmatch(value) is not None
    )


@lru_cache(maxsize=10_000)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the expression for a pattern of IAM: `*` is any text, `?` one character, nothing else is special."""
    parts = ({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return re.compile("".join(parts), re.DOTALL)


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
