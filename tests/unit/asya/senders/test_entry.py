"""protocol §4.entry: what a sender outside may bring into the mesh."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from asya.function.hop import Arrival
from asya.protocol import ids
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Retention
from asya.protocol.times import format_time, parse_time
from asya.senders import entry
from tests.doubles.envelopes import SENT_AT, arrival_of, message, status
from tests.doubles.times import TIMES

DAY = 86400.0
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DEADLINE = "2026-11-20T13:00:00.000000Z"
OF_THE_MESH = ids.child_id("order-7", 0, 1, 1)
REFERENCE = {"key": "inbox/infer/5f/5f.json", "size": 1, "sha256": "5f"}


def came(**members: Any) -> Arrival:
    """The arrival of a message of a person."""
    return arrival_of(message(**members), sender="AIDABOB")


def end_of_claim(retention: Retention, **members: Any) -> datetime | None:
    envelope: Envelope = came(**members).envelope()
    return entry.end_of_claim(envelope, NOW, retention)


def enter(arrival: Arrival, *, is_free: bool = True) -> Arrival:
    return entry.enter(arrival, "infer", lambda _: is_free, lambda envelope, _: envelope)


@pytest.mark.rule("4.entry", "3.owner", "3.tool")
def test_an_envelope_enters_without_what_only_the_mesh_writes() -> None:
    forged = {
        "tenant": "acme",
        "x-asya-generation": 9999,
        "x-asya-root": "order-1",
        "x-asya-owner": "AIDAALICE",
        "x-asya-tool": "analyse",
        "x-asya-hook": "h",
    }
    kept = {
        "x-asya-mesh-status": "off",
        "x-asya-route-override": {"post": "prep"},
        "traceparent": "00-1",
        "tracestate": "a=b",
    }
    own = status(phase="succeeded", reason="Completed", attempt=7, deadline_at=DEADLINE, unknown=1)
    entered = enter(came(parent_id="order-1", headers=forged | kept, status=own))
    assert entered.refusal is None
    assert entered.is_new
    envelope = entered.envelope()
    assert envelope.parent_id is None
    assert {name: envelope.header(name) for name in envelope.headers} == {
        "tenant": "acme",
        "x-asya-owner": "AIDABOB",
    } | kept
    created = {"phase": "pending", "actor": "infer", "attempt": 1, "max_attempts": 1, "deadline_at": DEADLINE}
    created |= {"created_at": format_time(SENT_AT), "updated_at": format_time(SENT_AT)}
    assert msgspec.json.decode(entered.body)["status"] == created
    assert msgspec.json.decode(entered.body)["payload"] == {"text": "hello"}


@pytest.mark.rule("4.entry.reserved")
@pytest.mark.parametrize("envelope_id", [OF_THE_MESH, OF_THE_MESH.upper(), f"{OF_THE_MESH}-1", ids.mesh_id(bytes(16))])
def test_nobody_enters_with_an_id_that_the_mesh_gives_out(envelope_id: str) -> None:
    refused = enter(came(id=envelope_id))
    assert refused.refusal is not None
    assert "UUIDs of version 8" in str(refused.refusal)
    assert refused.refusal.envelope_id is None


@pytest.mark.parametrize(
    "envelope_id", ["9ea72ae8-dc19-4edb-8413-c2d305b0f6da", "9ea72ae8-dc19-4edb-8413-c2d305b0f6da-1", "order-7-1"]
)
def test_other_ids_are_free(envelope_id: str) -> None:
    assert enter(came(id=envelope_id)).refusal is None


@pytest.mark.rule("4.entry.claim")
def test_an_id_belongs_to_its_first_sender() -> None:
    refused = enter(came(), is_free=False)
    assert refused.refusal is not None
    assert "another sender, or the mesh itself, has a task of this id" in str(refused.refusal)
    assert refused.refusal.envelope_id is None


@pytest.mark.rule("4.entry")
def test_a_payload_is_read_from_the_inbox_alone() -> None:
    assert enter(came(headers={"x-asya-payload-ref": REFERENCE})).refusal is None
    elsewhere = enter(came(headers={"x-asya-payload-ref": REFERENCE | {"key": "payloads/infer/5f/5f.json"}}))
    assert "under inbox/ only" in str(elsewhere.refusal)
    of_another = enter(came(headers={"x-asya-payload-ref": REFERENCE | {"key": "inbox/payout/5f/5f.json"}}))
    assert "is not a payload for infer" in str(of_another.refusal)


@pytest.mark.rule("4.entry")
@pytest.mark.parametrize("late", ["2027-11-22T12:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_deadline_from_outside_keeps_nothing_for_longer_than_one_of_the_gateway(late: str) -> None:
    envelope = enter(came(status={"deadline_at": late})).envelope()
    assert envelope.status is not None
    assert envelope.status.deadline_at == format_time(SENT_AT + timedelta(days=366))


@given(sent_at=TIMES, deadline_at=TIMES)
def test_a_message_of_any_time_may_enter(sent_at: str, deadline_at: str) -> None:
    envelope = enter(replace(came(status={"deadline_at": deadline_at}), sent_at=parse_time(sent_at))).envelope()
    assert envelope.status is not None
    end = entry.end_of_claim(envelope, NOW, Retention(results=DAY))
    assert end is not None
    assert NOW < end < NOW + timedelta(days=500)


@pytest.mark.parametrize(("is_free", "envelope_id"), [(True, "env-1"), (False, None)])
def test_an_unreadable_message_keeps_an_id_that_its_sender_may_have(envelope_id: str | None, *, is_free: bool) -> None:
    refused = enter(came(route=7), is_free=is_free)
    assert refused.refusal is not None
    assert refused.refusal.envelope_id == envelope_id
    assert refused.body == came(route=7).body  # what came is kept


def test_an_unreadable_message_brings_no_headers_of_the_mesh() -> None:
    forged = came(route=7, headers={"tenant": "acme", "x-asya-generation": 3})
    assert set(entry.kept_headers(forged)) == {"tenant", "x-asya-generation"}
    assert set(entry.kept_headers(replace(forged, is_new=True))) == {"tenant"}


@pytest.mark.parametrize(
    ("members", "bears"),
    [
        ({"status": ...}, False),
        ({"status": {"deadline_at": DEADLINE}}, False),
        ({}, True),
        ({"status": ..., "parent_id": "order-1"}, True),
        ({"status": ..., "headers": {"x-asya-generation": 1}}, True),
        ({"status": ..., "headers": {"x-asya-mesh-status": "off"}}, False),
    ],
)
def test_a_bare_envelope_bears_no_state(members: dict[str, Any], *, bears: bool) -> None:
    assert entry.bears_state(came(**members).envelope()) is bears


@pytest.mark.rule("4.entry.claim")
def test_an_id_is_kept_for_twice_the_life_of_a_record() -> None:
    month = timedelta(days=30)
    retention = Retention(tasks=30 * DAY, payloads=15 * DAY, runs=14 * DAY, results=30 * DAY)
    assert end_of_claim(retention) == NOW + 2 * month
    assert end_of_claim(retention, status={"deadline_at": DEADLINE}) == NOW + timedelta(hours=1) + 2 * month
    assert end_of_claim(retention, status={"deadline_at": "2020-01-01T00:00:00Z"}) == NOW + 2 * month


@pytest.mark.rule("4.entry.claim")
@pytest.mark.parametrize("longest", ["payloads", "runs", "results"])
def test_an_id_is_kept_while_anything_lives_that_it_names(longest: str) -> None:
    retention = replace(Retention(tasks=30 * DAY, payloads=DAY, runs=DAY, results=DAY), **{longest: 400 * DAY})
    # The task may end a month from now, and what it leaves lives for 400 days more.
    assert end_of_claim(retention) == NOW + timedelta(days=430)
    assert end_of_claim(retention, status={"deadline_at": DEADLINE}) == NOW + timedelta(days=430, hours=1)


@pytest.mark.rule("4.entry.claim")
def test_an_id_is_kept_for_ever_where_results_are() -> None:
    assert end_of_claim(Retention()) is None
    assert end_of_claim(Retention(), status={"deadline_at": DEADLINE}) is None
