"""A boto3 session whose clients answer with stubs; each call is checked against the service model."""

from typing import Any

import boto3
from botocore.stub import Stubber


class StubbedSession:
    """Clients of AWS without network."""

    def __init__(self) -> None:
        session = boto3.Session("AKIA", "secret", region_name="us-east-1")
        self._clients = {name: session.client(name) for name in ("cloudformation", "emr-serverless", "lambda", "sqs")}
        self.stubs = {name: Stubber(client) for name, client in self._clients.items()}
        for stub in self.stubs.values():
            stub.activate()

    def client(self, service: str) -> Any:
        return self._clients[service]

    def answer(self, service: str, method: str, answer: dict[str, Any], **expected: Any) -> None:
        """Add the next answer of a service, for a call with these parameters."""
        self.stubs[service].add_response(method, answer, expected)

    def refuse(self, service: str, method: str, code: str, message: str = "") -> None:
        """Add the next error of a service."""
        self.stubs[service].add_client_error(method, code, message)

    def check(self) -> None:
        """Assert that all answers were asked for."""
        for stub in self.stubs.values():
            stub.assert_no_pending_responses()
