"""Declares the calls of the gateway about Model Context Protocol (`protocol §13`)."""

from asya.api_call import ApiCall, Named
from asya.protocol import names

CALLS = (
    ApiCall(
        method="POST",
        path="/mcp",
        handler="asya.capabilities.mcp.routes.McpRoutes.post",
        function=names.GATEWAY_API,
        summary="Send a message of Model Context Protocol (streamable HTTP)",
        details="See [Model Context Protocol](#model-context-protocol)",
        group="mcp",
        body=Named("asya.gateway.lambdas.openapi.Message"),
        answers={
            200: Named("asya.gateway.json_rpc.Success"),
            202: None,
            400: Named("asya.gateway.json_rpc.Failure"),
            404: Named("asya.gateway.json_rpc.Failure"),
        },
        errors=(406, 413),
        headers={"MCP-Protocol-Version": {"type": "string"}, "Prefer": {"type": "string"}},
        streamed=(200,),
        waits=True,
    ),
    ApiCall(
        method="GET",
        path="/mcp",
        handler="asya.capabilities.mcp.routes.McpRoutes.refuse",
        function=names.GATEWAY_API,
        summary="Open a stream of an MCP session: not supported",
        group="mcp",
        answers={},
        errors=(405,),
    ),
    ApiCall(
        method="DELETE",
        path="/mcp",
        handler="asya.capabilities.mcp.routes.McpRoutes.refuse",
        function=names.GATEWAY_API,
        summary="End an MCP session: not supported",
        group="mcp",
        answers={},
        errors=(405,),
    ),
)
