"""Declares the calls of the gateway about Agent2Agent (`protocol §13`)."""

from asya.api_call import ApiCall, Named
from asya.protocol import names

CARD = ApiCall(
    method="GET",
    path="/.well-known/agent-card.json",
    handler="asya.capabilities.a2a.routes.calls.A2ARoutes.card",
    function=names.GATEWAY_API,
    summary="Read the agent card of the mesh",
    details="Only a mesh with tools has one",
    rights="public",
    exists=Named("asya.predicates.with_tools"),
    answers={200: {"type": "object"}},
)

CALLS = (
    ApiCall(
        method="POST",
        path="/a2a",
        handler="asya.capabilities.a2a.routes.calls.A2ARoutes.answer",
        function=names.GATEWAY_API,
        summary="Send a message of Agent2Agent (JSON-RPC, version 1.0)",
        details="See [Agent2Agent](#agent2agent)",
        group="a2a",
        body=Named("asya.gateway.lambdas.openapi.Message"),
        answers={200: {"anyOf": [Named("asya.gateway.json_rpc.Success"), Named("asya.gateway.json_rpc.Failure")]}},
        errors=(400, 413),
        headers={"A2A-Version": {"type": "string"}},
        streamed=(200,),
        waits=True,
    ),
    ApiCall(
        method="POST",
        path="/a2a/tasks/{id}",
        handler="asya.capabilities.a2a.routes.calls.A2ARoutes.cancel_by_path",
        function=names.GATEWAY_API,
        summary="Cancel a task of Agent2Agent; `:cancel` follows its id",
        group="a2a",
        answers={200: {"type": "object"}},
        errors=(404, 409),
    ),
    CARD,
)
