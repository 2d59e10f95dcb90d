"""The gateway: its functions, the HTTP API whose calls are signed (IAM), and, if the mesh file says so, a second one in front of
the same functions for people with a token (JWT): a route takes one kind of authorizer (`protocol §13`)."""

from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from constructs import Construct

from asya.protocol import names
from asya.protocol.api import CALLS
from infra.build.functions import build_gateway, build_table
from infra.function import FunctionSettings, MeshFunction
from infra.http_api import Entrance, http_api
from infra.mesh import Mesh
from infra.mesh_file.mesh_model import JwtSection
from infra.options import OptionError
from infra.permissions import gateway

_TIMEOUT = 29  # the API waits 30 s at most


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
    """

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "Gateway")
        functions = self._functions(mesh, layer)
        api = http_api(
            self,
            Entrance(
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
        jwt = mesh.file.gateway.jwt
        self.token_api = None if jwt is None else self._token_api(mesh, jwt, functions)

    def _functions(self, mesh: Mesh, layer: lambda_.ILayerVersion) -> dict[str, lambda_.Function]:
        options = mesh.options
        code = {
            names.GATEWAY_INGEST: build_table(options.build_folder, mesh.table_bytes),
            names.GATEWAY_API: build_gateway(options.build_folder, options.packages_target, mesh.table_bytes),
        }
        grants = {
            names.GATEWAY_INGEST: gateway.ingest(mesh.addresses),
            names.GATEWAY_API: gateway.api(mesh.addresses, mesh.table),
        }
        return {
            name: MeshFunction(
                self,
                mesh,
                layer,
                FunctionSettings(
                    name=name,
                    handler=f"asya.lambdas.{name.removeprefix('x-').replace('-', '_')}.handle",
                    code=lambda_.Code.from_asset(str(code[name])),
                    grants=grants[name],
                    timeout=_TIMEOUT,
                ),
            ).function
            for name in grants
        }

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
            Entrance(
                name=f"asya-{mesh.namespace}-jwt",
                calls=calls,
                functions={function: functions[function] for function in functions if function in answering},
                authorizer=HttpJwtAuthorizer("Issuer", jwt.issuer, jwt_audience=list(jwt.audience)),
                caller="authorizer.claims.sub",
            ),
        )
