"""What Lambda says of the readers of queues."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.capabilities.operations.aws.mesh_numbers import QueueReaders

ARN = "arn:aws:sqs:eu-north-1:123456789012:asya-shop-"


class StubLambda:
    """Answers as Lambda does, and counts the calls."""

    def __init__(self) -> None:
        self.states = {"check": "Enabled", "label": "Disabled", "bill": "Enabled", "gone": "Enabled"}
        self.calls: list[str] = []

    def get_paginator(self, name: str) -> StubLambda:
        self.calls.append(name)
        return self

    def paginate(self) -> list[dict[str, Any]]:
        mappings = [
            {"UUID": f"id-{name}", "State": state, "EventSourceArn": ARN + name} for name, state in self.states.items()
        ]
        return [
            {"EventSourceMappings": mappings[:1]},
            {"EventSourceMappings": [*mappings[1:], {"UUID": "kafka", "State": "Enabled"}]},
        ]

    def get_function_concurrency(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803 - of AWS
        self.calls.append(FunctionName)
        if FunctionName == "asya-shop-gone":
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "GetFunctionConcurrency")
        return {"ReservedConcurrentExecutions": 0} if FunctionName == "asya-shop-bill" else {}


@pytest.mark.rule("13.operations.mesh.not-read")
def test_functions_are_looked_up_for_queues_with_messages_alone() -> None:
    client, seconds = StubLambda(), [0.0]
    warnings: list[str] = []
    readers = QueueReaders(client, "shop", lambda: seconds[0], warnings.append)
    actors = ("check", "label", "bill", "gone", "lonely")
    assert readers.unread(actors, ()).keys() == {"label", "lonely"}
    found = readers.unread(actors, ("check", "bill", "gone"))
    assert {name: each.reason for name, each in found.items()} == {
        "label": "event source mapping disabled",
        "bill": "reserved concurrency of the function is 0",
        "gone": "the function asya-shop-gone is missing",
        "lonely": "event source mapping missing",
    }
    readers.unread(actors, ("check", "bill", "gone"))
    assert client.calls == ["list_event_source_mappings", "asya-shop-check", "asya-shop-bill", "asya-shop-gone"]
    client.states["label"], seconds[0] = "Enabled", 10.0
    assert "label" not in readers.unread(actors, ())


def test_a_function_that_may_not_be_read_hides_no_mapping() -> None:
    client, warnings = StubLambda(), list[str]()

    def refuse(*, FunctionName: str) -> dict[str, Any]:  # noqa: N803 - of AWS
        raise ClientError(
            {"Error": {"Code": "AccessDeniedException", "Message": FunctionName}}, "GetFunctionConcurrency"
        )

    client.get_function_concurrency = refuse  # type: ignore[method-assign]
    readers = QueueReaders(client, "shop", lambda: 0.0, warnings.append)
    assert readers.unread(("check", "label"), ("check", "label")).keys() == {"label"}
    assert len(warnings) == 1
