"""Adds the stacks of a mesh to a CDK app. cdk-nag checks them at synthesis."""

from pathlib import Path

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from asya_infra.acknowledgements import acknowledge
from asya_infra.contracts.check import with_types
from asya_infra.contracts.mesh_contracts import contracts_of
from asya_infra.contracts.mesh_types import read_mesh_types, tool_schemas
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import read_options
from asya_infra.stacks import add_stacks

# Rules that do not fit this design anywhere. Those that do not fit one resource are acknowledged beside it.
_ACKNOWLEDGED = {
    "Serverless-LambdaDLQ": "It is for asynchronous calls. The functions are called by queues, which have dead-letter queues, "
    "by the gateway, whose callers get the error, or by schedules and alarms, which call again.",
    "Serverless-LambdaEventSourceMappingDestination": "It is for streams. A queue has a dead-letter queue instead.",
    "Serverless-LambdaLatestVersion": "Python 3.13 is a supported runtime, and the layer is built for it. An upgrade is a "
    "deliberate change.",
    "Serverless-LambdaTracing": "Envelopes carry a W3C trace, and `telemetry` exports it. Lambda's own traces end at each queue.",
    "Serverless-SQSRedrivePolicy": "Only dead-letter queues have none.",
    "Serverless-EventBusDLQ": "EventBridge retries for a day. A schedule or an alarm fires again, the reconciler finds a run "
    "whose event was lost, and the next night compacts what one has missed.",
    "Serverless-SNSRedrivePolicy": "Receivers outside of AWS confirm and acknowledge; the alarm and the task keep the state.",
}


def add_mesh(app: App, folder: Path) -> Mesh:
    """Add the stacks of the mesh that the app's context selects (`asya_infra.options`).

    Args:
        app: the app, with its context.
        folder: the base of relative paths in the context.

    Raises:
        OptionError: a context value is invalid.
        MeshFileError: the mesh file is invalid, or types conflict along a route.
        PackagesError: packages cannot be installed for their target.
    """
    options = read_options(app.node.try_get_context, folder)
    loaded = load_mesh(options.mesh, options.stage)
    types = read_mesh_types(loaded, options.build_folder)
    contracts = contracts_of(
        loaded.mesh, types.functions, tool_schemas(loaded.mesh, types), loaded.capabilities.registry
    )
    mesh = Mesh(with_types(loaded, types), options, contracts)
    add_stacks(app, mesh)
    for rule, reason in _ACKNOWLEDGED.items():
        acknowledge(app, rule, reason)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return mesh
