"""The gateway: its HTTP APIs and its functions (`protocol §13`).

The other functions take reports, send push notifications and list roles.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from constructs import Construct

from asya.gateway.call_table import calls_of
from asya.manifest import Requests
from asya.predicates import with_many_actors
from asya.protocol import names
from asya.registry import own_functions
from asya.tasks.aws.items import RECORD, WATCHED
from asya_infra import timings
from asya_infra.acknowledgements import acknowledge
from asya_infra.build.functions import build_gateway, build_table
from asya_infra.constructs.encryption import customer_key
from asya_infra.constructs.gateway.http_api import ApiSettings, http_api, jwt_api
from asya_infra.constructs.gateway.streaming import LiveStreams
from asya_infra.constructs.mesh_function import FunctionSettings, MeshFunction, declared
from asya_infra.constructs.roles import ListedRoles
from asya_infra.contracts.mesh_contracts import TOOLS, tools_record
from asya_infra.mesh import Mesh


@dataclass(frozen=True)
class GatewayAddress:
    """The URL of the gateway without a trailing slash."""

    url: str


class Gateway(Construct):
    """The APIs with their logs and functions.

    Attributes:
        api_id: the id of the API for signed calls, for use in this stack.
        address: the address of the API for signed calls, for use in other stacks.
        token_api: the API for calls with tokens; None without `gateway.jwt`.
        live: the API of continuous streams; None without `gateway.streaming: adapter`.
    """

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "Gateway")
        functions = self._functions(mesh, layer)
        api = http_api(
            self,
            ApiSettings(
                name=f"asya-{mesh.namespace}",
                calls=calls_of(mesh.table),
                functions=functions,
                authorizer=HttpIamAuthorizer(),
                caller="identity.userArn",
                log_retention=mesh.log_retention,
                log_key=customer_key(self, mesh),
            ),
        )
        for function in functions.values():
            # All functions report to the API for signed calls, because they have no tokens.
            function.add_environment("ASYA_GATEWAY_URL", api.api_endpoint)
        self.api_id = api.api_id
        # Stacks of earlier versions import it until they are deployed, which is after this one.
        Stack.of(self).export_value(api.api_id)
        self.address = GatewayAddress(api.api_endpoint)
        self.live = self._live_streams(mesh, layer, functions[names.GATEWAY_STREAM])
        jwt = mesh.file.gateway.jwt
        self.token_api = None if jwt is None else jwt_api(self, mesh, jwt, functions)

    def _functions(self, mesh: Mesh, layer: lambda_.ILayerVersion) -> dict[str, lambda_.Function]:
        options = mesh.options
        table = build_table(options.build_folder, mesh.table_bytes)
        api = build_gateway(options.build_folder, options.packages_target, mesh.table_bytes)
        functions: tuple[FunctionSettings, ...] = (
            _function(mesh, names.GATEWAY_API, api),
            _function(
                mesh,
                names.GATEWAY_STREAM,
                table,
                # Each stream client occupies one concurrent execution. Reserved concurrency protects the rest.
                reserved=mesh.file.gateway.watchers or None,
            ),
            _function(
                mesh,
                names.OPERATIONS,
                table,
                environment={"ASYA_SPARK_ARCHITECTURE": mesh.file.spark.application.architecture.upper()},
            ),
        )
        if with_many_actors(mesh.table, names.LOGS):
            functions += (_function(mesh, names.LOGS, table),)
        if mesh.table.webhooks:
            calls_tools = any(trigger.webhook and trigger.tool for trigger in mesh.table.triggers.values())
            # The arguments of tools are checked before an answer names their task.
            code = api if calls_tools else table
            functions += (_function(mesh, names.WEBHOOKS, code),)
        for each in own_functions(mesh.table):
            if isinstance(each.called_by, Requests):
                functions += (declared(mesh, each.name, code=mesh.code_of(each)),)
        made = {each.name: MeshFunction(self, mesh, layer, each) for each in functions}
        if mesh.records_contracts:
            made[names.GATEWAY_API].record(TOOLS, tools_record(mesh.contracts))
        return {name: each.function for name, each in made.items()}

    def _live_streams(self, mesh: Mesh, layer: lambda_.ILayerVersion, tokens: lambda_.Function) -> LiveStreams | None:
        """Add the API of continuous streams, except on the local cloud, which has no web adapter layer."""
        if mesh.file.gateway.streaming != "adapter" or mesh.options.layer_target == "local":
            return None
        live = LiveStreams(self, mesh, layer)
        tokens.add_environment("ASYA_STREAM_URL", live.url)
        return live


def _function(
    mesh: Mesh,
    name: str,
    code: Path,
    *,
    environment: dict[str, str] | None = None,
    reserved: int | None = None,
) -> FunctionSettings:
    asset = lambda_.Code.from_asset(str(code))
    return declared(mesh, name, code=asset, environment=environment, reserved=reserved)


def report_queues(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the function and connect it to both queues. It sends ends of triggers' tasks to `x-triggers`, and nothing else."""
    settings = declared(
        mesh,
        names.REPORTS,
        code=mesh.table_code(),
        # Reports that name another gateway go there by HTTP; those that name this one stay here.
        environment={"ASYA_GATEWAY_URL": gateway.url},
    )
    MeshFunction(scope, mesh, layer, settings).add_declared_event_sources()


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


_BATCH = 100
_ATTEMPTS = 10
# Only changes of records with push configurations invoke the function.
_WATCHED_ONLY = {"dynamodb": {"Keys": {"sk": {"S": [RECORD]}}, "NewImage": {WATCHED: {"BOOL": [True]}}}}


class PushNotifications(Construct):
    """One function queues the changes of tasks, one delivers them. Only a mesh with tools has them."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, task_changes: str) -> None:
        super().__init__(scope, "PushNotifications")
        code = lambda_.Code.from_asset(str(build_table(mesh.options.build_folder, mesh.table_bytes)))
        feed = MeshFunction(
            self,
            mesh,
            layer,
            declared(mesh, names.PUSH_FEED, code=code),
        )
        lambda_.CfnEventSourceMapping(
            self,
            "Changes",
            function_name=feed.function.function_name,
            event_source_arn=task_changes,
            # Includes the changes before the mapping was active.
            starting_position="TRIM_HORIZON",
            batch_size=_BATCH,
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(_WATCHED_ONLY))]
            ),
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=_ATTEMPTS,
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(
                    destination=mesh.addresses.dlq_arn(names.PUSH)
                )
            ),
        )
        MeshFunction(self, mesh, layer, declared(mesh, names.PUSH, code=code)).add_declared_event_sources()
