"""Each function of the mesh tells x-triggers about what it has found out, and nothing else."""

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from asya.capabilities.triggers.lanes import LaneKey, Start
from asya.capabilities.triggers.messages import (
    EndNotice,
    UnusableMessageError,
    check_sender,
    encode_again,
    encode_check,
    encode_end_notice,
    slot_message,
)
from asya.capabilities.triggers.operators.operator_messages import backfill_message, fire_message
from asya.protocol import names
from asya.protocol.mesh_table import Actor, MeshTable

MESH = MeshTable(namespace="shop", actors={"greet": Actor(kind="handler")})
AT = datetime(2026, 11, 26, 1, tzinfo=UTC)
LANE = LaneKey("nightly", "d1")
MESSAGES = {
    "slot": slot_message("nightly", AT, [AT]),
    "webhook": b'{"trigger": "hook", "webhook": {"key": "k"}}',
    "fire": fire_message("nightly", "f", AT),
    "backfill": backfill_message("b"),
    "end": encode_end_notice(EndNotice(ended="t", kind="trigger", name="nightly")),
    "lane": encode_check(LANE),
    "window": encode_check(LANE, closes="t"),
    "again": encode_again(LANE, Start(id="t", at="2026-11-26T01:00:00.000000Z")),
    "objects": b'{"Records": []}',
    "event": b'{"trigger": "orders", "event": {}}',
    "test of S3": b'{"Event": "s3:TestEvent"}',
}
ALLOWED = {
    names.CLOCK: {"slot", "backfill", "end", "lane", "window", "again"},
    names.WEBHOOKS: {"webhook"},
    names.REPORTS: {"end"},
    names.TRIGGERS: {"lane", "window", "again"},
    names.GATEWAY_API: set(MESSAGES),
    "greet": set[str](),
}


@pytest.mark.rule("16.senders.forms")
@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("function", ALLOWED)
def test_16_a_function_sends_its_own_messages_alone(function: str, message: str) -> None:
    refusal: Any = pytest.raises(UnusableMessageError, match=f"{function} may not ")
    with nullcontext() if message in ALLOWED[function] else refusal:
        check_sender(MESH, function, MESSAGES[message])


@pytest.mark.rule("16.senders.forms")
def test_16_a_message_with_two_forms_needs_the_right_to_both() -> None:
    """So a reader that tries the forms in another order reads nothing that the sender may not send."""
    body = msgspec.json.encode({"trigger": "hook", "webhook": {}, "slot": "2026-11-26T01:00:00Z", "event": {}})
    with pytest.raises(UnusableMessageError, match="x-hooks may not tell about objects and events"):
        check_sender(MESH, names.WEBHOOKS, body)


@pytest.mark.parametrize("body", [b"no json", b"[]", b"\xff", b"{}", b'{"trigger": "nightly"}', b"[" * 100_000])
def test_what_has_no_form_is_left_to_the_readers(body: bytes) -> None:
    for function in ALLOWED:
        check_sender(MESH, function, body)
