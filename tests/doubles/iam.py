"""Evaluates the identity policies of a role in a template, as IAM does: an explicit denial wins, nothing is allowed by default."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_VALUES = {"Partition": "aws", "Region": "eu-west-1", "AccountId": "111122223333", "URLSuffix": "amazonaws.com"}


def concrete(text: str) -> str:
    """Return a text of a template with a partition, a region, an account and a domain."""
    return re.sub(r"<(Partition|Region|AccountId|URLSuffix)>", lambda match: _VALUES[match[1]], text)


@dataclass(frozen=True)
class Request:
    """One call: the action, the resource, and the context keys that conditions read."""

    action: str
    resource: str
    context: Mapping[str, str | tuple[str, ...]]


def is_allowed(statements: Iterable[Mapping[str, Any]], request: Request) -> bool:
    """Return whether the statements of a role allow a call."""
    effects = {statement["Effect"] for statement in statements if _applies(statement, request)}
    return effects == {"Allow"}


def _applies(statement: Mapping[str, Any], request: Request) -> bool:
    actions = any(_like(request.action, pattern) for pattern in _listed(statement["Action"]))
    resources = any(_like(request.resource, concrete(pattern)) for pattern in _listed(statement["Resource"]))
    conditions = statement.get("Condition", {})
    return actions and resources and all(_holds(operator, keys, request) for operator, keys in conditions.items())


def _holds(operator: str, keys: Mapping[str, Any], request: Request) -> bool:
    for_all, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    base = name.removesuffix("IfExists")
    if base not in {"ArnEquals", "StringEquals", "StringLike"}:
        raise NotImplementedError(f"condition operator {operator}")
    for key, patterns in keys.items():
        value = request.context.get(key)
        if value is None:
            if optional or for_all == "ForAllValues":
                continue
            return False
        values = (value,) if isinstance(value, str) else value
        if not all(any(_like(each, concrete(pattern)) for pattern in _listed(patterns)) for each in values):
            return False
    return True


def _like(value: str, pattern: str) -> bool:
    """Match as IAM does: `*` any text, `?` one character, nothing else is special."""
    expression = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, value, re.DOTALL) is not None


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
