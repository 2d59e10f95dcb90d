"""The HTTP APIs of the gateway: routes, throttling, access logs, and the check of JWTs (`protocol §13`)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from aws_cdk import RemovalPolicy
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_authorizers import HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from asya.api_call import ApiCall
from asya.gateway.call_table import calls_of
from asya.gateway.doors import Door, doors_of
from asya_infra.acknowledgements import acknowledge
from asya_infra.constructs.encryption import customer_key
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.mesh_model import JwtSection
from asya_infra.options import OptionError

# Calls per second; API Gateway answers 429 above.
_CALLS_PER_SECOND, _BURST = 500, 1000
# Most calls come in by one route, so it takes more.
_MAIN_RATE = (2000, 4000)
_PUBLIC_REASON = "A public call returns no data of a caller, or checks the caller's token or signature itself."
_LOG_FIELDS = {
    "request_id": "requestId",
    "at": "requestTime",
    "method": "httpMethod",
    "route": "routeKey",
    "path": "path",
    "status": "status",
    "bytes": "responseLength",
    "error": "error.message",
    "integration_error": "integrationErrorMessage",
}


@dataclass(frozen=True, kw_only=True)
class ApiSettings:
    """The settings of one API.

    Attributes:
        name: the name of the API; the name of its log group contains it.
        calls: the calls.
        functions: the functions of the gateway, by name.
        authorizer: authenticates callers.
        caller: the context variable with the caller, for the access log.
        log_retention: the retention of the access log.
        log_key: the key that encrypts the access log; None for a key of AWS.
    """

    name: str
    calls: Sequence[ApiCall]
    functions: Mapping[str, lambda_.IFunction]
    authorizer: apigateway.IHttpRouteAuthorizer
    caller: str
    log_retention: logs.RetentionDays
    log_key: kms.IKey | None = None

    @cached_property
    def doors(self) -> tuple[Door, ...]:
        """The routes of the calls; open ones have no authorizer."""
        return doors_of(self.calls, _MAIN_RATE)


def http_api(scope: Construct, entrance: ApiSettings) -> apigateway.HttpApi:
    """Add an API with its stage and its access log."""
    api = apigateway.HttpApi(scope, "Api", api_name=entrance.name, create_default_stage=False)
    answering = {door.function for door in entrance.doors}
    integrations = {
        name: HttpLambdaIntegration(
            f"{name}-integration",
            function,
            # One permission for all routes: a function's policy is limited to about 40 statements.
            scope_permission_to_route=False,
        )
        for name, function in entrance.functions.items()
        if name in answering
    }
    routes: list[apigateway.HttpRoute] = []
    for door in entrance.doors:
        [route] = api.add_routes(
            path=door.path,
            methods=[apigateway.HttpMethod[door.method]],
            integration=integrations[door.function],
            authorizer=None if door.is_open else entrance.authorizer,
        )
        routes.append(route)
        if door.is_open:
            acknowledge(route, "AwsSolutions-APIG4", _PUBLIC_REASON)
    _default_stage(scope, entrance, api, routes)
    return api


def _default_stage(
    scope: Construct, entrance: ApiSettings, api: apigateway.HttpApi, routes: list[apigateway.HttpRoute]
) -> None:
    log = logs.LogGroup(
        scope,
        "AccessLog",
        # Log groups with this prefix need no entry in the account's log delivery policy, which is small.
        log_group_name=f"/aws/vendedlogs/{entrance.name}-gateway",
        encryption_key=entrance.log_key,
        retention=entrance.log_retention,
        removal_policy=RemovalPolicy.DESTROY,
    )
    fields = _LOG_FIELDS | {"caller": entrance.caller}
    rates = {door.key: door.rate for door in entrance.doors if door.rate is not None}
    stage = apigateway.CfnStage(
        scope,
        "Stage",
        api_id=api.api_id,
        stage_name="$default",
        auto_deploy=True,
        default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
            throttling_rate_limit=_CALLS_PER_SECOND, throttling_burst_limit=_BURST
        ),
        route_settings={
            route: {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
            for route, (rate, burst) in sorted(rates.items())
        }
        or None,
        access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn,
            format=json.dumps({name: f"$context.{field}" for name, field in fields.items()}),
        ),
    )
    # API Gateway refuses the settings of a route that does not exist yet.
    stage.node.add_dependency(*routes)


def jwt_api(
    scope: Construct, mesh: Mesh, jwt: JwtSection, functions: Mapping[str, lambda_.Function]
) -> apigateway.HttpApi:
    """Add the API with the public calls and those that take tokens.

    API Gateway checks signature, issuer, audience and expiry of a token. `asya.gateway.access` reads the caller.

    Args:
        scope: the gateway.
        mesh: the mesh.
        jwt: the issuer, its audience, and the groups of calls.
        functions: the functions of the gateway by name.

    Raises:
        OptionError: the issuer has no https:// URL, which API Gateway needs.
    """
    if mesh.options.layer_target == "lambda" and not jwt.issuer.startswith("https://"):
        raise OptionError(
            f"gateway.jwt.issuer: should be an https:// URL, because API Gateway needs TLS; got {jwt.issuer!r}. Only the local "
            "cloud takes it: name it in a stage of its own, under stages.local.gateway.jwt, and start `asya local up --stage local`"
        )
    # Links lead to the API for signed calls.
    calls = [call for call in calls_of(mesh.table) if call.is_for_tokens(jwt.calls)]
    tokens = Construct(scope, "Tokens")
    return http_api(
        tokens,
        ApiSettings(
            name=f"asya-{mesh.namespace}-jwt",
            calls=calls,
            functions=functions,
            authorizer=HttpJwtAuthorizer("Issuer", jwt.issuer, jwt_audience=list(jwt.audience)),
            caller="authorizer.claims.sub",
            log_retention=mesh.log_retention,
            log_key=customer_key(tokens, mesh),
        ),
    )
