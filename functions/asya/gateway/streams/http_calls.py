"""Declares the calls of the gateway about streams (`protocol §13`)."""

from asya.api_call import EVENT_STREAM, FROM_HEADER, FROM_QUERY, ApiCall, Named
from asya.protocol import names

CALLS = (
    ApiCall(
        method="GET",
        path="/api/v1/mesh/{id}/events",
        handler="asya.gateway.streams.routes.StreamRoutes.signed",
        function=names.GATEWAY_STREAM,
        summary="Stream a task: Server-Sent Events `status`, `partial`, `final`",
        group="streams",
        answers=EVENT_STREAM,
        errors=(404,),
        query=FROM_QUERY,
        headers=FROM_HEADER,
    ),
    ApiCall(
        method="GET",
        path="/api/v1/mesh/{id}/stream",
        handler="asya.gateway.streams.routes.StreamRoutes.with_token",
        function=names.GATEWAY_STREAM,
        summary="Stream a task with a stream token instead of a signature",
        rights="public",
        group="streams",
        answers=EVENT_STREAM,
        errors=(403, 404),
        query={"token": {"type": "string", "required": True}} | FROM_QUERY,
        headers=FROM_HEADER,
    ),
    ApiCall(
        method="POST",
        path="/api/v1/mesh/{id}/stream-token",
        handler="asya.gateway.streams.routes.StreamRoutes.create_token",
        function=names.GATEWAY_STREAM,
        summary="Create a token for one task's stream, valid for an hour",
        group="streams",
        answers={201: Named("asya.gateway.streams.routes.StreamToken")},
        errors=(404,),
    ),
)
