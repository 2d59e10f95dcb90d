"""Declares the calls of the gateway about pauses (`protocol §13`)."""

from asya.api_call import ApiCall, Named
from asya.protocol import names

_RATE = (10, 20)
"""People and jobs make these open calls once each, and each one that is not refused reads a record."""

RESUME = ApiCall(
    method="POST",
    path="/api/v1/mesh/{id}/resume",
    handler="asya.gateway.routes.resume.ResumeRoutes.answer",
    function=names.GATEWAY_API,
    summary="End a task's pause",
    details="Body: `{input, since?}`. See [pause and resume](../how-to/pause-and-resume.md)",
    in_console=True,
    body=Named("asya.gateway.lambdas.openapi.ResumeRequest"),
    needs_body=False,
    answers={202: Named("asya.gateway.routes.resume.Resumed")},
    errors=(400, 404, 409, 413, 422),
)
QUESTION = ApiCall(
    method="GET",
    path="/callbacks",
    handler="asya.gateway.callbacks.routes.CallbackRoutes.show",
    function=names.GATEWAY_API,
    summary="Show the question of a pause to the holder of its link",
    details=("[The link](../how-to/pause-and-resume.md#let-a-link-answer) is the right. 409 once the pause has ended"),
    rights="public",
    audience="holders of links",
    exists=Named("asya.predicates.with_callbacks"),
    rate=_RATE,
    answers={200: "text/html; charset=utf-8"},
    errors=(404, 409),
    query={"token": {"type": "string", "required": True}},
)
ANSWER = ApiCall(
    method="POST",
    path="/callbacks",
    handler="asya.gateway.callbacks.routes.CallbackRoutes.resume",
    function=names.GATEWAY_API,
    summary="Answer a pause by its link, once",
    details="409 once the pause has ended",
    rights="public",
    audience="holders of links",
    exists=Named("asya.predicates.with_callbacks"),
    rate=_RATE,
    body=Named("asya.gateway.lambdas.openapi.CallbackAnswer"),
    needs_body=False,
    answers={200: Named("asya.gateway.routes.resume.Resumed")},
    errors=(400, 404, 409, 413, 422),
    query={"token": {"type": "string", "required": True}},
)

CALLS = (
    RESUME,
    QUESTION,
    ANSWER,
)
