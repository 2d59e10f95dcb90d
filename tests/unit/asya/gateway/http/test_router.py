"""The rendering of responses for API Gateway (`protocol §13`)."""

from asya.function.aws.telemetry import Telemetry
from asya.gateway.call_table import CALLS
from asya.gateway.http.router import HttpRoute, Responder, Response, TextBody, answer
from tests.doubles.gateway_functions import ALICE, route_event
from tests.doubles.tasks import at

LOG = Telemetry("flights", "test").log
HEALTH = next(call for call in CALLS if call.route == "GET /health")


def test_a_text_body_is_unchanged_and_other_content_is_json() -> None:
    def answered(content: object) -> tuple[str, str]:
        action: Responder = lambda *_: Response(200, content)  # noqa: E731
        response = answer(route_event("GET /health", ALICE), [HttpRoute(HEALTH, action)], at(0), LOG)
        return response["headers"]["content-type"], response["body"]

    assert answered(TextBody("text/event-stream", ": hello\n\n")) == ("text/event-stream", ": hello\n\n")
    assert answered({"status": "ok"}) == ("application/json", '{"status":"ok"}')
