"""The gateway: its functions and its HTTP APIs (`protocol §13`).

One API takes signed calls (IAM). If the mesh file asks for it, a second API takes calls with tokens (JWT) and uses the same
functions: a route of API Gateway has one kind of authorizer only.
"""

from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from constructs import Construct

from asya.gateway.calls import CALLS
from asya.protocol import names
from asya_infra.build.functions import build_gateway, build_table
from asya_infra.constructs.function import FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.http_api import ApiSettings, http_api
from asya_infra.constructs.gateway.stream_key import stream_key
from asya_infra.constructs.gateway.streaming import LiveStreams
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.mesh_model import JwtSection
from asya_infra.options import OptionError
from asya_infra.permissions import gateway
from asya_infra.permissions.grant import Grant

_TIMEOUT = 29  # the API waits 30 s at most


_HANDLERS = {
    names.GATEWAY_INGEST: "asya.gateway.lambdas.wiring.ingest",
    names.GATEWAY_API: "asya.gateway.lambdas.wiring.api",
    names.GATEWAY_STREAM: "asya.gateway.streams.wiring.stream",
}


@dataclass(frozen=True)
class GatewayAddress:
    """Where the gateway is: its API's id, and its URL without a trailing slash."""

    api_id: str
    url: str


class Gateway(Construct):
    """The APIs, their logs, their functions.

    Attributes:
        api_id: of the API whose calls are signed; for this stack, which cannot import what it exports itself.
        address: the same for the others.
        token_api: where people with a token call; None if the mesh takes none.
        live: streams that go on; None if the mesh has none.
        key: behind stream tokens.
    """

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "Gateway")
        self.key = stream_key(self, mesh)
        functions = self._functions(mesh, layer)
        api = http_api(
            self,
            ApiSettings(
                name=f"asya-{mesh.namespace}",
                calls=CALLS,
                functions=functions,
                authorizer=HttpIamAuthorizer(),
                caller="identity.userArn",
            ),
        )
        for function in functions.values():
            # Also what comes through the other API reports here: the mesh's functions have no tokens.
            function.add_environment("ASYA_GATEWAY_URL", api.api_endpoint)
        self.api_id = api.api_id
        # As an import from the start: permissions with wildcards in them are acknowledged by what they will read.
        self.address = GatewayAddress(Stack.of(self).export_value(api.api_id), api.api_endpoint)
        self.live = self._live_streams(mesh, layer, functions[names.GATEWAY_STREAM])
        jwt = mesh.file.gateway.jwt
        self.token_api = None if jwt is None else self._token_api(mesh, jwt, functions)

    def _functions(self, mesh: Mesh, layer: lambda_.ILayerVersion) -> dict[str, lambda_.Function]:
        options, addresses = mesh.options, mesh.addresses
        table = build_table(options.build_folder, mesh.table_bytes)
        api = build_gateway(options.build_folder, options.packages_target, mesh.table_bytes)
        functions = (
            _function(names.GATEWAY_INGEST, table, gateway.ingest(addresses)),
            _function(names.GATEWAY_API, api, gateway.api(addresses, mesh.table)),
            _function(
                names.GATEWAY_STREAM,
                table,
                gateway.stream(addresses, names.GATEWAY_STREAM, self.key.key_arn),
                environment={"ASYA_TOKEN_KEY": self.key.key_arn},
                # Whoever looks on holds a function for as long as he waits. However many they are, the mesh goes on.
                reserved=mesh.file.gateway.watchers or None,
            ),
        )
        return {each.name: MeshFunction(self, mesh, layer, each).function for each in functions}

    def _live_streams(self, mesh: Mesh, layer: lambda_.ILayerVersion, tokens: lambda_.Function) -> LiveStreams | None:
        """What gives tokens is told where they lead. The local cloud has no such layer, and streams as it does by itself."""
        if mesh.file.gateway.streaming != "adapter" or mesh.options.layer_target == "host":
            return None
        live = LiveStreams(self, mesh, layer, self.key)
        tokens.add_environment("ASYA_STREAM_URL", live.url)
        return live

    def _token_api(self, mesh: Mesh, jwt: JwtSection, functions: dict[str, lambda_.Function]) -> apigateway.HttpApi:
        if mesh.options.layer_target == "lambda" and not jwt.issuer.startswith("https://"):
            raise OptionError(
                f"-c layer_target=lambda: AWS takes no issuer without TLS; gateway.jwt.issuer is {jwt.issuer}"
            )
        scope = Construct(self, "Tokens")
        calls = [call for call in CALLS if call.is_public or call.takes_tokens(jwt.calls)]
        answering = {call.function for call in calls}
        return http_api(
            scope,
            ApiSettings(
                name=f"asya-{mesh.namespace}-jwt",
                calls=calls,
                functions={function: functions[function] for function in functions if function in answering},
                authorizer=HttpJwtAuthorizer("Issuer", jwt.issuer, jwt_audience=list(jwt.audience)),
                caller="authorizer.claims.sub",
            ),
        )


def _function(
    name: str, code: Path, grants: list[Grant], environment: dict[str, str] | None = None, reserved: int | None = None
) -> FunctionSettings:
    return FunctionSettings(
        name=name,
        handler=_HANDLERS[name],
        code=lambda_.Code.from_asset(str(code)),
        grants=grants,
        timeout=_TIMEOUT,
        environment=environment or {},
        reserved=reserved,
    )
