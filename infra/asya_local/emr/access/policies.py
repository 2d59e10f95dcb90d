"""Reading IAM policy documents. Pure."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EMR_PRINCIPAL = "emr-serverless.amazonaws.com"
_PASSED_TO = "iam:passedtoservice"


def statements(document: str | Mapping[str, Any]) -> list[dict[str, Any]]:
    """The statements of a policy document, always as a list."""
    parsed = json.loads(document) if isinstance(document, str) else document
    found = parsed.get("Statement", [])
    return [dict(one) for one in (found if isinstance(found, list) else [found])]


def as_list(value: str | Sequence[str] | None) -> list[str]:
    """A policy element that may be one string or several."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def resolve_passed_service(document: str | Mapping[str, Any]) -> str:
    """The same policy for a caller that passes a role to EMR Serverless.

    MiniStack's policy simulator takes no context, so a condition on `iam:PassedToService` would never hold there.
    What the context would say is known here: statements whose condition holds lose it, the others are left out.
    """
    kept = []
    for statement in statements(document):
        conditions = dict(statement.get("Condition", {}))
        holds = True
        for operator, keys in list(conditions.items()):
            passed = {key: value for key, value in keys.items() if key.lower() == _PASSED_TO}
            if not passed:
                continue
            holds = holds and all(_matches(operator, as_list(wanted)) for wanted in passed.values())
            conditions[operator] = {key: value for key, value in keys.items() if key not in passed}
            if not conditions[operator]:
                del conditions[operator]
        if holds:
            rest = {key: value for key, value in statement.items() if key != "Condition"}
            kept.append({**rest, **({"Condition": conditions} if conditions else {})})
    return json.dumps({"Version": "2012-10-17", "Statement": kept})


def _matches(operator: str, wanted: Sequence[str]) -> bool:
    name = operator.rsplit(":", maxsplit=1)[-1].removesuffix("IfExists").lower()
    found = any(fnmatchcase(EMR_PRINCIPAL, pattern) for pattern in wanted)
    return not found if "not" in name else found
