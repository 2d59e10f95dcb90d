"""Checks of a typed mesh file that go beyond types. `run_checks` yields a finding for each broken rule."""

from collections.abc import Callable, Iterator

from asya_infra.mesh_file.checks import (
    access,
    agent,
    callers,
    code,
    kinds,
    limits,
    names,
    notify,
    pauses,
    resiliency,
    routes,
    secrets,
    spark,
    storage,
    telemetry,
    tools,
    triggers,
    vpc,
    waits,
)
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.trigger_checks import payloads as trigger_payloads
from asya_infra.mesh_file.trigger_checks import sources as trigger_sources

CHECKS: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    names.check,
    kinds.check,
    code.check,
    limits.check,
    spark.check,
    resiliency.check,
    routes.check,
    access.check,
    secrets.check,
    pauses.check,
    waits.check,
    tools.check,
    triggers.check,
    trigger_sources.check,
    trigger_payloads.check,
    agent.check,
    callers.check,
    notify.check,
    telemetry.check,
    storage.check,
    vpc.check,
)


def run_checks(context: Context) -> Iterator[Finding]:
    """Yield the findings of all checks."""
    for check in CHECKS:
        yield from check(context)
