"""The API for calls with tokens: API Gateway checks each JWT before a function runs (`protocol §13`)."""

from collections.abc import Mapping

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpJwtAuthorizer
from constructs import Construct

from asya.gateway.call_table import CALLS, own_calls
from asya_infra.constructs.customer_key import customer_key
from asya_infra.constructs.gateway.http_api import ApiSettings, http_api
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.mesh_model import JwtSection
from asya_infra.options import OptionError


def jwt_api(
    scope: Construct, mesh: Mesh, jwt: JwtSection, functions: Mapping[str, lambda_.Function]
) -> apigateway.HttpApi:
    """Add the API with the public calls and those that take tokens.

    API Gateway checks signature, issuer, audience and expiry of a token. `asya.gateway.jwt_claims` reads the caller.

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
            f"gateway.jwt.issuer: should be an https:// URL, because API Gateway needs TLS; got {jwt.issuer!r}"
        )
    # Links lead to the API for signed calls.
    calls = [call for call in (*CALLS, *own_calls(mesh.table)) if call.is_for_tokens(jwt.calls)]
    answering = {call.function for call in calls}
    tokens = Construct(scope, "Tokens")
    return http_api(
        tokens,
        ApiSettings(
            name=f"asya-{mesh.namespace}-jwt",
            calls=calls,
            functions={name: function for name, function in functions.items() if name in answering},
            authorizer=HttpJwtAuthorizer("Issuer", jwt.issuer, jwt_audience=list(jwt.audience)),
            caller="authorizer.claims.sub",
            log_retention=mesh.log_retention,
            log_key=customer_key(tokens, mesh),
        ),
    )
