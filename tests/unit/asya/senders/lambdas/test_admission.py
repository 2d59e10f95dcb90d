"""Messages of senders outside at the functions that read queues of envelopes (`protocol §4.entry`)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec import structs

from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.function.aws.failed_messages import StartMarks
from asya.function.hop import Arrival
from asya.function.lambdas.batch import records
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.protocol.times import format_time
from asya.senders.aws.entry_items import LetterSenders, OwnerClaims
from asya.senders.aws.role_list import RoleItems
from asya.senders.lambdas.admission import Admission
from tests.doubles.envelopes import message, status
from tests.doubles.light_actor import echo, never
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SINK = "asya-shop-sink"
MESSAGE_ID = "message-0"
FORGED = message(
    parent_id="order-1",
    headers={"x-asya-generation": 9999, "x-asya-owner": "AIDAALICE"},
    status=status(phase="succeeded", reason="Completed"),
)


def from_person(*bodies: bytes | str, person: str = "AIDABOB") -> dict[str, Any]:
    """An event with messages of a person."""
    event = sqs_event(*bodies)
    for record in event["Records"]:
        record["attributes"]["SenderId"] = person
    return event


def process(world: MeshWorld, event: Mapping[str, Any], handler: Callable[[Any], Any] = echo) -> list[str]:
    return batch_failures(build_sidecar(world.light(handler)).process(event))


@pytest.mark.rule("4.entry")
def test_a_forged_envelope_starts_a_task_of_its_sender(world: MeshWorld) -> None:
    assert process(world, from_person(FORGED)) == []
    (onward,) = world.sent("post")
    assert (onward.generation, onward.parent_id, onward.header("x-asya-owner")) == (0, None, "AIDABOB")
    registered = world.gateway.events[0]
    assert (registered.status, registered.data.owner, registered.generation or 0) == ("registered", "AIDABOB", 0)


@pytest.mark.rule("4.entry")
def test_a_role_of_the_mesh_sends_what_it_likes(world: MeshWorld) -> None:
    assert process(world, sqs_event(message(headers={"x-asya-generation": 3}))) == []
    (onward,) = world.sent("post")
    assert onward.generation == 3
    assert world.dynamodb.tables[SINK].items == {}  # neither a claim nor a look at one


@pytest.mark.rule("4.entry.claim")
def test_the_id_of_another_sender_is_refused_and_the_message_is_kept(world: MeshWorld) -> None:
    assert OwnerClaims(world.dynamodb, SINK).claim("env-1", "AIDAALICE", NOW, "infer")
    assert process(world, from_person(FORGED), never) == []
    (refused,) = world.sent("x-sump")
    assert refused.id == ids.id_of_message(MESSAGE_ID)
    assert refused.generation == 0
    assert refused.status is not None
    assert refused.status.reason == "ParseError"
    assert msgspec.json.decode(refused.payload)["original_message"] == FORGED.decode()
    assert world.gateway.events == []


@pytest.mark.rule("4.entry")
@pytest.mark.parametrize("table", [RoleItems, OwnerClaims])
def test_a_message_that_cannot_be_judged_stays(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch, table: type[RoleItems] | type[OwnerClaims]
) -> None:
    def fail(*_: Any) -> Any:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    monkeypatch.setattr(table, "function_of" if table is RoleItems else "claim", fail)
    assert process(world, from_person(FORGED), never) == [MESSAGE_ID]
    assert world.targets == []
    assert world.gateway.events == []


@pytest.mark.rule("4.entry")
def test_a_message_that_cannot_be_judged_for_itself_holds_up_no_other(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Admission._of_role

    def of_role(self: Admission, arrival: Arrival, actor: str, *, is_code: bool) -> Arrival:
        if b"poison" in arrival.body:
            raise ValueError("an item of the table has another form")
        return real(self, arrival, actor, is_code=is_code)

    monkeypatch.setattr(Admission, "_of_role", of_role)
    assert process(world, sqs_event(message(id="poison"), message(id="order-1"))) == [MESSAGE_ID]
    assert [onward.id for onward in world.sent("post")] == ["order-1"]


@pytest.mark.rule("4.entry.ends")
def test_a_sender_outside_ends_nothing(world: MeshWorld) -> None:
    assert batch_failures(build_sink(world.services("x-sink")).process(from_person(FORGED))) == []
    (refused,) = world.sent("x-sump")
    assert refused.id == ids.id_of_message(MESSAGE_ID)
    assert not world.dynamodb.tables[SINK].items
    assert not world.s3.objects
    assert batch_failures(build_sump(world.services("x-sump")).process(from_person(FORGED))) == []
    assert not world.dynamodb.tables[SINK].items
    ((_, stored),) = world.s3.objects.items()
    assert stored == FORGED


@pytest.mark.rule("4.entry.moved")
def test_a_dead_letter_that_sqs_moved_back_is_still_that_of_its_role(world: MeshWorld) -> None:
    LetterSenders(world.dynamodb, SINK).note(FORGED, "AROAINFER", NOW)
    again = message(headers={"x-asya-generation": 2})
    LetterSenders(world.dynamodb, SINK).note(again, "AROAINFER", NOW)
    assert process(world, from_person(again)) == []
    (onward,) = world.sent("post")
    assert onward.generation == 2


@pytest.mark.rule("4.entry.moved")
def test_the_letter_of_a_person_that_sqs_moved_back_is_still_that_of_the_person(world: MeshWorld) -> None:
    body = message(status=...)
    assert process(world, from_person(body)) == []  # the id is Bob's
    admission = world.services("x-dlq").admission
    admission.note_letter(Arrival(body=body, message_id="m", sent_at=NOW, sender="AIDABOB"), "infer")
    assert process(world, from_person(body, person="AIDAOPERATOR")) == []
    assert [onward.header("x-asya-owner") for onward in world.sent("post")] == ["AIDABOB"] * 2
    assert world.sent("x-sump") == []


@pytest.mark.rule("4.entry.moved")
def test_a_letter_that_died_again_keeps_its_first_sender(world: MeshWorld) -> None:
    admission, senders = world.services("x-dlq").admission, LetterSenders(world.dynamodb, SINK)
    for sender in ("AROAINFER", "AIDAOPERATOR"):
        admission.note_letter(Arrival(body=FORGED, message_id="m", sent_at=NOW, sender=sender), "infer")
    assert senders.sender_of(FORGED, "infer") == "AROAINFER"


def receive(world: MeshWorld, event: dict[str, Any], count: int) -> None:
    """Nothing of what the messages of an event cause is accepted at their n-th receive, so they stay."""
    for record in event["Records"]:
        record["attributes"]["ApproximateReceiveCount"] = str(count)
    world.sqs.broken.add("SendMessageBatch")
    assert process(world, event) == [record["messageId"] for record in event["Records"]]
    world.sqs.broken.clear()


def notes(world: MeshWorld) -> list[str]:
    return [key[0] for key in world.dynamodb.tables[SINK].items if key[0].startswith("LETTER#")]


MOVED = message(id=ids.child_id("env-1", 0, 1, "0"), headers={"x-asya-generation": 2})


@pytest.mark.rule("4.entry.moved.unseen")
def test_a_letter_that_sqs_moved_back_before_x_dlq_saw_it_is_that_of_its_role(world: MeshWorld) -> None:
    receive(world, sqs_event(MOVED), 2)
    assert process(world, from_person(MOVED, person="AIDAOPERATOR")) == []
    (onward,) = world.sent("post")
    assert (onward.id, onward.generation) == (ids.child_id("env-1", 0, 1, "0"), 2)


@pytest.mark.rule("4.entry.moved.unseen")
def test_so_is_that_of_a_person(world: MeshWorld) -> None:
    body = message(status=...)
    receive(world, from_person(body), 2)
    assert process(world, from_person(body, person="AIDAOPERATOR")) == []
    assert [onward.header("x-asya-owner") for onward in world.sent("post")] == ["AIDABOB"]


@pytest.mark.rule("4.entry.moved.unseen", "4.entry.claim")
def test_a_task_that_a_role_starts_stays_its_own(world: MeshWorld) -> None:
    """It has claimed the id, which the mover may not have."""
    body = message(status=...)
    receive(world, sqs_event(body), 2)
    assert process(world, from_person(body, person="AIDAOPERATOR")) == []
    assert [onward.header("x-asya-owner") for onward in world.sent("post")] == ["AROAEXAMPLEGATEWAYROLE"]
    assert world.sent("x-sump") == []


@pytest.mark.rule("4.entry.moved.unseen")
def test_a_letter_that_died_again_after_its_move_keeps_its_first_sender(world: MeshWorld) -> None:
    receive(world, sqs_event(MOVED), 2)
    receive(world, from_person(MOVED, person="AIDAOPERATOR"), 2)
    assert process(world, from_person(MOVED, person="AIDACAROL")) == []
    assert [onward.generation for onward in world.sent("post")] == [2]


@pytest.mark.rule("4.entry.moved.unseen", "4.starts.judged")
@pytest.mark.parametrize(
    ("send", "owner"), [(from_person, "AIDABOB"), (sqs_event, "AROAEXAMPLEGATEWAYROLE")], ids=["person", "role"]
)
def test_a_letter_that_its_function_gave_up_is_that_of_its_first_sender(
    world: MeshWorld, send: Callable[[bytes], dict[str, Any]], owner: str
) -> None:
    """Its body is the admitted one, which the notes of the message as it came do not name."""
    event = send(message(status=...))
    (record,) = event["Records"]
    record["attributes"]["ApproximateReceiveCount"] = "6"
    marks = StartMarks(world.dynamodb, SINK, "infer")
    for count in range(2, 6):
        marks.add(structs.replace(records(event)[0].arrival, receive_count=count), epoch_seconds=NOW.timestamp())
    assert process(world, event, never) == []
    (letter,) = world.sqs.sent["asya-shop-infer-dlq"]
    assert process(world, from_person(letter.body, person="AIDAOPERATOR")) == []
    assert [onward.header("x-asya-owner") for onward in world.sent("post")] == [owner]
    assert world.sent("x-sump") == []


@pytest.mark.rule("4.entry.moved.unseen", "4.entry.reserved")
def test_what_no_code_has_received_twice_is_refused_and_alters_no_task(world: MeshWorld) -> None:
    receive(world, sqs_event(MOVED), 1)
    world.gateway.events.clear()
    assert process(world, from_person(MOVED, person="AIDAOPERATOR"), never) == []
    (refused,) = world.sent("x-sump")
    assert refused.id == ids.id_of_message(MESSAGE_ID)
    assert world.gateway.events == []


@pytest.mark.rule("4.entry.moved.unseen")
def test_the_note_of_another_actor_makes_nobody_a_role(world: MeshWorld) -> None:
    receive(world, sqs_event(MOVED), 2)
    services = world.services("x-sump")
    assert batch_failures(build_sump(services).process(from_person(MOVED, person="AIDAEVE"))) == []
    assert world.gateway.events == [event for event in world.gateway.events if event.status != "failed"]
    ((key, _),) = world.s3.objects.items()
    assert key == f"results/sump/unreadable/{MESSAGE_ID}"


@pytest.mark.rule("4.entry.moved.unseen")
def test_a_note_is_written_at_few_receives(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = []
    monkeypatch.setattr(LetterSenders, "note", lambda _, __, sender, ___, actor: noted.append((count, sender, actor)))
    for count in range(1, 40):
        receive(world, sqs_event(MOVED), count)
    assert [number for number, *_ in noted] == [2, 4, 8, 16, 32]
    assert {tuple(rest) for _, *rest in noted} == {("AROAEXAMPLEGATEWAYROLE", "infer")}


@pytest.mark.rule("4.entry.moved.unseen")
def test_without_the_table_of_notes_a_message_goes_on(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    monkeypatch.setattr(LetterSenders, "note", silent)
    event = sqs_event(MOVED, receive_counts={0: 2})
    assert process(world, event) == []
    assert len(world.sent("post")) == 1


@pytest.mark.parametrize("deadline", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_an_absurd_deadline_holds_up_no_other_message(world: MeshWorld, deadline: str) -> None:
    absurd = message(id="env-0", status={"deadline_at": deadline})
    assert process(world, from_person(absurd, message())) == []
    assert "env-1" in [onward.id for onward in world.sent("post")]


@pytest.mark.rule("14.missing-id")
def test_a_legacy_message_without_an_id_enters(world: MeshWorld) -> None:
    legacy = b'{"route": {"steps": ["infer", "post"], "current": 0}, "payload": 1}'
    assert process(world, from_person(legacy)) == []
    assert [onward.id for onward in world.sent("post")] == [ids.id_of_message(MESSAGE_ID)]


def test_without_the_list_the_table_is_asked_once_for_a_batch(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def fail(_: RoleItems, role_id: str) -> str | None:
        calls.append(role_id)
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    monkeypatch.setattr(RoleItems, "function_of", fail)
    bodies = [message(id=f"env-{number}") for number in range(10)]
    assert len(process(world, from_person(*bodies), never)) == 10
    assert len(calls) == 1
    assert max(world.sqs.visibility.values()) <= 5  # an outage, whose messages return soon at first


def test_the_messages_of_a_batch_are_judged_each_for_itself(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = OwnerClaims.claim

    def fail_for_one(claims: OwnerClaims, envelope_id: str, owner: str, until: datetime, entered_at: str) -> bool:
        if envelope_id == "env-1":
            raise EndpointConnectionError(endpoint_url="https://dynamodb")
        return claim(claims, envelope_id, owner, until, entered_at)

    monkeypatch.setattr(OwnerClaims, "claim", fail_for_one)
    event = from_person(*(message(id=f"env-{number}", status=...) for number in range(4)))
    event["Records"][3]["attributes"]["SenderId"] = "AROAINFER"
    assert process(world, event) == ["message-1"]
    owners = {onward.id: onward.header("x-asya-owner") for onward in world.sent("post")}
    assert owners == {"env-0": "AIDABOB", "env-2": "AIDABOB", "env-3": "AROAINFER"}


@pytest.mark.rule("4.entry.claim")
def test_a_role_that_starts_a_task_claims_its_id_too_whatever_its_form(world: MeshWorld) -> None:
    assert OwnerClaims(world.dynamodb, SINK).claim("env-2", "AIDAALICE", NOW, "infer")
    derived = ids.child_id("order-7", 0, 0, 1)
    event = sqs_event(*(message(id=each, status=...) for each in ("env-3", "env-2", derived)))
    assert process(world, event) == []
    assert [onward.id for onward in world.sent("post")] == ["env-3"]
    assert [refused.id for refused in world.sent("x-sump")] == [ids.id_of_message(f"message-{n}") for n in (1, 2)]


@pytest.mark.rule("4.entry.claim", "5.2")
def test_a_message_of_a_role_claims_its_id_before_it_is_postponed(world: MeshWorld) -> None:
    assert OwnerClaims(world.dynamodb, SINK).claim("env-2", "AIDAALICE", NOW, "infer")
    soon = format_time(datetime.now(UTC) + timedelta(seconds=500))
    bodies = (message(id=each, status=..., headers={"x-asya-not-before": soon}) for each in ("env-1", "env-2"))
    assert process(world, sqs_event(*bodies), never) == []
    # The copy on the own queue bears a status, so nobody would ask for its claim again.
    assert [again.id for again in world.sent("infer")] == ["env-1"]
    assert [refused.id for refused in world.sent("x-sump")] == [ids.id_of_message("message-1")]
    assert not OwnerClaims(world.dynamodb, SINK).claim("env-1", "AIDAEVE", NOW, "infer")
