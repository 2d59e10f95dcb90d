"""The HTTP API: every route is signed for (IAM) but the health check; two functions behind it (`protocol §13`)."""

import json
from dataclasses import dataclass

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from asya.protocol import names
from asya.protocol.api import CALLS
from infra.build.functions import build_gateway, build_table
from infra.function import FunctionSettings, MeshFunction
from infra.mesh import Mesh
from infra.nag import acknowledge
from infra.permissions import gateway

_TIMEOUT = 29  # the API waits 30 s at most
# What API Gateway lets through in a second; more is answered 429. Reports come in batches, and their senders repeat them.
_CALLS_PER_SECOND, _BURST = 500, 1000
_REPORTS_PER_SECOND = 5000
_REPORTS = ("POST /api/v1/mesh/events", "POST /api/v1/mesh/states")
_LOG_FIELDS = {
    "request_id": "requestId",
    "at": "requestTime",
    "route": "routeKey",
    "path": "path",
    "status": "status",
    "bytes": "responseLength",
    "caller": "identity.userArn",
    "error": "error.message",
    "integration_error": "integrationErrorMessage",
}


@dataclass(frozen=True)
class GatewayAddress:
    """Where the gateway is: its API's id, and its URL without a trailing slash."""

    api_id: str
    url: str


class Gateway(Construct):
    """The API, its log, its functions.

    Attributes:
        api_id: for this stack, which cannot import what it exports itself.
        address: for the others.
    """

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "Gateway")
        options = mesh.options
        code = {
            names.GATEWAY_INGEST: build_table(options.build_folder, mesh.table_bytes),
            names.GATEWAY_API: build_gateway(options.build_folder, options.packages_target, mesh.table_bytes),
        }
        grants = {
            names.GATEWAY_INGEST: gateway.ingest(mesh.addresses),
            names.GATEWAY_API: gateway.api(mesh.addresses, mesh.table),
        }
        functions = {
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
            )
            for name in grants
        }
        api = apigateway.HttpApi(self, "Api", api_name=f"asya-{mesh.namespace}", create_default_stage=False)
        integrations = {
            name: HttpLambdaIntegration(f"{name}-integration", function.function)
            for name, function in functions.items()
        }
        authorizer = HttpIamAuthorizer()
        made: list[apigateway.HttpRoute] = []
        for call in CALLS:
            routes = api.add_routes(
                path=call.path,
                methods=[apigateway.HttpMethod[call.method]],
                integration=integrations[call.function],
                authorizer=None if call.is_public else authorizer,
            )
            made += routes
            if call.is_public:
                acknowledge(
                    routes[0], "AwsSolutions-APIG4", "The health check says nothing but that the gateway answers."
                )
        self._default_stage(mesh, api, made)
        self.api_id = api.api_id
        # As an import from the start: permissions with wildcards in them are acknowledged by what they will read.
        self.address = GatewayAddress(Stack.of(self).export_value(api.api_id), api.api_endpoint)

    def _default_stage(self, mesh: Mesh, api: apigateway.HttpApi, routes: list[apigateway.HttpRoute]) -> None:
        log = logs.LogGroup(
            self,
            "AccessLog",
            # Groups of this prefix need no entry in the account's one, small log delivery policy.
            log_group_name=f"/aws/vendedlogs/asya-{mesh.namespace}-gateway",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        stage = apigateway.CfnStage(
            self,
            "Stage",
            api_id=api.api_id,
            stage_name="$default",
            auto_deploy=True,
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=_CALLS_PER_SECOND, throttling_burst_limit=_BURST
            ),
            route_settings={
                route: {"ThrottlingRateLimit": _REPORTS_PER_SECOND, "ThrottlingBurstLimit": _REPORTS_PER_SECOND}
                for route in _REPORTS
            },
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=log.log_group_arn,
                format=json.dumps({name: f"$context.{field}" for name, field in _LOG_FIELDS.items()}),
            ),
        )
        # Settings of a route are refused before the route is there.
        stage.node.add_dependency(*routes)
