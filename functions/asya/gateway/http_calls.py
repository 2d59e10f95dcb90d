"""Declares the calls of the gateway about itself (`protocol §13`)."""

from asya.api_call import ApiCall, Named
from asya.protocol import names

OPENAPI = ApiCall(
    method="GET",
    path="/openapi.json",
    handler="asya.gateway.lambdas.api.Api.openapi",
    function=names.GATEWAY_API,
    summary="Read this document",
    answers={200: {"type": "object"}},
)
HEALTH = ApiCall(
    method="GET",
    path="/health",
    handler="asya.gateway.lambdas.api.Api.health",
    function=names.GATEWAY_API,
    summary="Check the health of the gateway",
    rights="public",
    answers={200: Named("asya.gateway.lambdas.openapi.Health")},
)

CALLS = (OPENAPI, HEALTH)
