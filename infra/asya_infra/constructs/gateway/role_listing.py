"""The function that lists the roles of each stack (`protocol §4.roles`)."""

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.constructs.listed_roles import ListedRoles
from asya_infra.mesh import Mesh
from asya_infra.nag import acknowledge


def role_listing(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that lists the roles. It has no code of users, and its own role sends no message."""
    settings = declared(mesh, names.ROLES, code=mesh.table_code())
    function = MeshFunction(scope, mesh, layer, settings).function
    # A late retry would write the list of an older deployment: no call begins that could end after CloudFormation gave up.
    latest_start = Duration.seconds(timings.ROLES_ANSWER - settings.timeout)
    function.configure_async_invoke(max_event_age=latest_start, retry_attempts=0)
    acknowledge(
        function,
        "Serverless-LambdaAsyncFailureDestination",
        "CloudFormation waits for the answer of the function and fails the deployment without one.",
    )
    ListedRoles.of(scope, mesh).resource.node.add_dependency(function)
