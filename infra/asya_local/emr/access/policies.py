"""Reads IAM policy documents. Pure."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EMR_PRINCIPAL = "emr-serverless.amazonaws.com"
_PASSED_TO_SERVICE = "iam:passedtoservice"


def statements(document: str | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the statements of a policy document."""
    parsed = json.loads(document) if isinstance(document, str) else document
    value = parsed.get("Statement", [])
    return [dict(statement) for statement in (value if isinstance(value, list) else [value])]


def as_list(value: str | Sequence[str] | None) -> list[str]:
    """Return a policy element, one string or several, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def resolve_passed_service(document: str | Mapping[str, Any]) -> str:
    """Return the policy with its conditions on `iam:PassedToService` resolved for EMR Serverless.

    MiniStack's policy simulator takes no context, so such a condition never holds there. A statement loses its condition if it
    holds for EMR Serverless, and is left out otherwise.
    """
    resolved = []
    for statement in statements(document):
        conditions = dict(statement.get("Condition", {}))
        holds = True
        for operator, keys in list(conditions.items()):
            passed = {key: value for key, value in keys.items() if key.lower() == _PASSED_TO_SERVICE}
            if not passed:
                continue
            holds = holds and all(_matches(operator, as_list(patterns)) for patterns in passed.values())
            conditions[operator] = {key: value for key, value in keys.items() if key not in passed}
            if not conditions[operator]:
                del conditions[operator]
        if holds:
            rest = {key: value for key, value in statement.items() if key != "Condition"}
            resolved.append({**rest, **({"Condition": conditions} if conditions else {})})
    return json.dumps({"Version": "2012-10-17", "Statement": resolved})


def _matches(operator: str, patterns: Sequence[str]) -> bool:
    name = operator.rsplit(":", maxsplit=1)[-1].removesuffix("IfExists").lower()
    matches = any(fnmatchcase(EMR_PRINCIPAL, pattern) for pattern in patterns)
    return not matches if "not" in name else matches
