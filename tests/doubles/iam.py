"""Evaluates the identity policies of a role in a template, as IAM does."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from asya_infra.permissions import evaluation
from asya_infra.permissions.evaluation import Request

__all__ = ["Request", "concrete", "is_allowed"]

_VALUES = {"Partition": "aws", "Region": "eu-west-1", "AccountId": "111122223333", "URLSuffix": "amazonaws.com"}


def concrete(value: Any) -> Any:
    """Return a value of a template with a partition, a region, an account and a domain."""
    if isinstance(value, Mapping):
        return {key: concrete(each) for key, each in value.items()}
    if isinstance(value, list):
        return [concrete(each) for each in value]
    return re.sub(r"<(Partition|Region|AccountId|URLSuffix)>", lambda match: _VALUES[match[1]], str(value))


def is_allowed(statements: Iterable[Mapping[str, Any]], request: Request) -> bool:
    """Return whether the statements of a role allow a call."""
    return evaluation.is_allowed(map(concrete, statements), request)
