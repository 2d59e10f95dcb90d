"""One permission, and why it is as wide as it is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Grant:
    """Actions on resources.

    Attributes:
        why: the reason for a wildcard in it; needed if there is one.
        conditions: in the shape IAM has them: operator → key → value.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    why: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    effect: str = "Allow"

    def statement(self) -> dict[str, Any]:
        """As IAM's JSON."""
        conditions = {"Condition": dict(self.conditions)} if self.conditions else {}
        return {"Effect": self.effect, "Action": list(self.actions), "Resource": list(self.resources), **conditions}

    def wildcards(self) -> list[str]:
        """`Action::…` and `Resource::…` for everything with a `*` in it."""
        actions = [f"Action::{action}" for action in self.actions if "*" in action]
        return actions + [f"Resource::{resource}" for resource in self.resources if "*" in resource]


def document(grants: Iterable[Grant]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": [grant.statement() for grant in grants]}
