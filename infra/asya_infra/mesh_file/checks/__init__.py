"""Checks of a typed mesh file that go beyond types. `run_checks` yields a finding for each broken rule."""

from collections.abc import Callable, Iterator

from asya_infra.mesh_file.checks.access import check_access
from asya_infra.mesh_file.checks.agent import check_agent
from asya_infra.mesh_file.checks.callers import check_callers
from asya_infra.mesh_file.checks.code import check_code
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.checks.kinds import check_kinds
from asya_infra.mesh_file.checks.limits import check_limits
from asya_infra.mesh_file.checks.names import check_names
from asya_infra.mesh_file.checks.notify import check_notify
from asya_infra.mesh_file.checks.pauses import check_pauses
from asya_infra.mesh_file.checks.resiliency import check_resiliency
from asya_infra.mesh_file.checks.routes import check_routes
from asya_infra.mesh_file.checks.secrets import check_secrets
from asya_infra.mesh_file.checks.spark import check_spark
from asya_infra.mesh_file.checks.storage import check_storage
from asya_infra.mesh_file.checks.telemetry import check_telemetry
from asya_infra.mesh_file.checks.tools import check_tools
from asya_infra.mesh_file.checks.triggers import check_triggers
from asya_infra.mesh_file.checks.vpc import check_networks
from asya_infra.mesh_file.checks.waits import check_waits
from asya_infra.mesh_file.trigger_checks.payloads import check_payloads
from asya_infra.mesh_file.trigger_checks.sources import check_sources

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
