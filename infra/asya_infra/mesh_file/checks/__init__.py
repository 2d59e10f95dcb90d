"""What the types alone cannot say about a mesh: each check yields the places that break one rule."""

from collections.abc import Callable, Iterator

from asya_infra.mesh_file.checks import (
    access,
    agent,
    callers,
    code,
    kinds,
    limits,
    names,
    pauses,
    resiliency,
    routes,
    tools,
)
from asya_infra.mesh_file.checks.context import Context, Finding

CHECKS: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    names.check,
    kinds.check,
    code.check,
    limits.check,
    resiliency.check,
    routes.check,
    access.check,
    pauses.check,
    tools.check,
    agent.check,
    callers.check,
)


def run_checks(context: Context) -> Iterator[Finding]:
    """Every finding of every check."""
    for check in CHECKS:
        yield from check(context)
