"""Checks of a typed mesh file that go beyond types. `run_checks` yields a finding for each broken rule."""

from collections.abc import Callable, Iterator

from asya_infra.mesh_file.checks.access import check_access, check_callers, check_secrets
from asya_infra.mesh_file.checks.actors import (
    check_code,
    check_kinds,
    check_limits,
    check_pauses,
    check_resiliency,
    check_waits,
)
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.checks.deployment import check_networks, check_notify, check_storage, check_telemetry
from asya_infra.mesh_file.checks.routes import check_agent, check_names, check_routes, check_tools
from asya_infra.mesh_file.checks.spark import check_spark
from asya_infra.mesh_file.checks.triggers import check_payloads, check_sources, check_triggers

CHECKS: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    check_names,
    check_kinds,
    check_code,
    check_limits,
    check_spark,
    check_resiliency,
    check_routes,
    check_access,
    check_secrets,
    check_pauses,
    check_waits,
    check_tools,
    check_triggers,
    check_sources,
    check_payloads,
    check_agent,
    check_callers,
    check_notify,
    check_telemetry,
    check_storage,
    check_networks,
)


def run_checks(context: Context) -> Iterator[Finding]:
    """Yield the findings of all checks."""
    for check in CHECKS:
        yield from check(context)
