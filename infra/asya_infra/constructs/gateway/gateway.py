"""The gateway: its functions and its HTTP APIs (`protocol §13`).

One API takes signed calls (IAM). With `gateway.jwt`, a second API takes calls with tokens (JWT) and uses the same functions,
because a route of API Gateway has only one authorizer.
"""

from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from constructs import Construct

from asya.gateway.call_table import calls_of
from asya.manifest import Requests
from asya.protocol import names
from asya.registry import own_functions
from asya_infra.build.functions import build_gateway, build_table
from asya_infra.constructs.customer_key import customer_key
from asya_infra.constructs.function import FunctionSettings, MeshFunction, declared
from asya_infra.constructs.gateway.http_api import ApiSettings, http_api
from asya_infra.constructs.gateway.jwt_api import jwt_api
from asya_infra.constructs.gateway.stream_key import stream_key
from asya_infra.constructs.gateway.streaming import LiveStreams
from asya_infra.contracts.template_record import TOOLS, tools_record
from asya_infra.mesh import Mesh


@dataclass(frozen=True)
class GatewayAddress:
    """The URL of the gateway without a trailing slash, and the ARN of the key that signs its tokens."""

    url: str
    key_arn: str


class Gateway(Construct):
    """The APIs with their logs and functions.

    Attributes:
        api_id: the id of the API for signed calls, for use in this stack.
        address: the address of the API for signed calls, for use in other stacks.
        token_api: the API for calls with tokens; None without `gateway.jwt`.
        live: the API of continuous streams; None without `gateway.streaming: adapter`.
        key: the key that signs stream tokens and callbacks.
    """

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "Gateway")
        self.key = stream_key(self, mesh)
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
        self.address = GatewayAddress(api.api_endpoint, self.key.key_arn)
        self.live = self._live_streams(mesh, layer, functions[names.GATEWAY_STREAM])
        jwt = mesh.file.gateway.jwt
        self.token_api = None if jwt is None else jwt_api(self, mesh, jwt, functions)

    def _functions(self, mesh: Mesh, layer: lambda_.ILayerVersion) -> dict[str, lambda_.Function]:
        options, key = mesh.options, self.key.key_arn
        table = build_table(options.build_folder, mesh.table_bytes)
        api = build_gateway(options.build_folder, options.packages_target, mesh.table_bytes)
        functions: tuple[FunctionSettings, ...] = (
            _function(mesh, names.GATEWAY_INGEST, table),
            # It checks the tokens of callbacks if the mesh has them.
            _function(
                mesh,
                names.GATEWAY_API,
                api,
                key,
                environment={"ASYA_TOKEN_KEY": key} if mesh.table.has_callbacks else {},
            ),
            _function(
                mesh,
                names.GATEWAY_STREAM,
                table,
                key,
                environment={"ASYA_TOKEN_KEY": key},
                # Each stream client occupies one concurrent execution. Reserved concurrency protects the rest.
                reserved=mesh.file.gateway.watchers or None,
            ),
            _function(
                mesh,
                names.OPERATIONS,
                table,
                environment={"ASYA_SPARK_ARCHITECTURE": mesh.file.spark.application.architecture.upper()},
            ),
            _function(mesh, names.LOGS, table),
        )
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
        if mesh.file.gateway.streaming != "adapter" or mesh.options.layer_target == "host":
            return None
        live = LiveStreams(self, mesh, layer, self.key)
        tokens.add_environment("ASYA_STREAM_URL", live.url)
        return live


def _function(
    mesh: Mesh,
    name: str,
    code: Path,
    key: str | None = None,
    *,
    environment: dict[str, str] | None = None,
    reserved: int | None = None,
) -> FunctionSettings:
    asset = lambda_.Code.from_asset(str(code))
    return declared(mesh, name, code=asset, key=key, environment=environment, reserved=reserved)
