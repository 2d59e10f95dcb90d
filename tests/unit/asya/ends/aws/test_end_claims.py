"""protocol §11: one end per envelope and generation, by a claim in an emulated table."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from asya.ends.aws.end_claims import Claim, EndClaims
from tests.doubles.mesh_world import empty_table, emulated_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture(scope="module")
def client() -> "Iterator[DynamoDBClient]":
    with emulated_table("sink") as made:
        yield made


@pytest.fixture
def claims(client: "DynamoDBClient") -> EndClaims:
    empty_table(client, "sink")
    return EndClaims(client, "asya-shop-sink", keep_seconds=60)


def claim(
    phase: str = "succeeded", generation: int = 0, key: str = "", *, position: int = 0, provisional: bool = False
) -> Claim:
    return Claim("env-1", generation, phase, key or f"{phase}/env-1.json", position, provisional)


def write_pause(client: "DynamoDBClient", generation: int, epoch: int) -> None:
    """What a pause actor writes to the item."""
    client.update_item(
        TableName="asya-shop-sink",
        Key={"pk": {"S": "env-1"}, "sk": {"S": "claim"}},
        UpdateExpression="SET pause_generation = :generation, pause_epoch = :epoch",
        ExpressionAttributeValues={":generation": {"N": str(generation)}, ":epoch": {"N": str(epoch)}},
    )


@pytest.mark.rule("11.sink.provisional", "13.cancel")
@pytest.mark.parametrize("by_call", [False, True])
def test_a_cancellation_replaces_a_provisional_end_only_if_a_call_made_it(claims: EndClaims, by_call: bool) -> None:
    claims.take(claim("failed", provisional=True), epoch_seconds=1000)
    result = claims.take(replace(claim("canceled"), is_by_call=by_call), epoch_seconds=1000)
    assert (result.outcome, result.claim.phase) == (("taken", "canceled") if by_call else ("refused", "failed"))


def test_the_first_takes_it_and_the_same_phase_again(claims: EndClaims) -> None:
    for _ in range(2):
        result = claims.take(claim(), epoch_seconds=1000)
        assert (result.outcome, result.claim, result.replaced_key) == ("taken", claim(), None)


def test_the_same_phase_finishes_the_object_that_was_begun(claims: EndClaims) -> None:
    claims.take(claim(key="happy-asya/T1/env-1.json"), epoch_seconds=1000)
    again = claims.take(claim(key="happy-asya/T2/env-1.json"), epoch_seconds=1000)
    assert (again.outcome, again.claim.key) == ("taken", "happy-asya/T1/env-1.json")


@pytest.mark.parametrize("other", [claim("failed"), claim("canceled")])
def test_another_phase_is_refused(claims: EndClaims, other: Claim) -> None:
    claims.take(claim(), epoch_seconds=1000)
    result = claims.take(other, epoch_seconds=1000)
    assert (result.outcome, result.claim) == ("refused", claim())


@pytest.mark.rule("11.sink.claim", "12.newer-object")
def test_a_higher_generation_takes_over_and_a_lower_one_is_refused(claims: EndClaims) -> None:
    claims.take(claim("failed"), epoch_seconds=1000)
    taken = claims.take(claim("succeeded", 1), epoch_seconds=1000)
    assert (taken.outcome, taken.replaced_key) == ("taken", "failed/env-1.json")
    assert claims.take(claim("failed"), epoch_seconds=1000).outcome == "refused"


def test_the_object_that_was_replaced_is_not_forgotten_when_the_process_dies(claims: EndClaims) -> None:
    claims.take(claim("failed"), epoch_seconds=1000)
    for _ in range(2):
        assert claims.take(claim("succeeded", 1), epoch_seconds=1000).replaced_key == "failed/env-1.json"


@pytest.mark.rule("11.sink.claim")
def test_a_provisional_claim_in_between_does_not_hide_the_object_to_remove(claims: EndClaims) -> None:
    """A provisional end has no object of its own."""
    claims.take(claim("failed", key="T0/env-1.json"), epoch_seconds=1000)
    claims.take(claim("failed", 1, key="T1/env-1.json", provisional=True), epoch_seconds=1000)
    for _ in range(2):
        taken = claims.take(claim("succeeded", 1, key="T2/env-1.json"), epoch_seconds=1000)
        assert (taken.outcome, taken.claim.key, taken.replaced_key) == ("taken", "T2/env-1.json", "T0/env-1.json")
    again = claims.take(claim("succeeded", 2, key="T3/env-1.json"), epoch_seconds=1000)
    assert again.replaced_key == "T2/env-1.json"


@pytest.mark.rule("11.sink.claim")
def test_a_provisional_claim_of_a_later_generation_does_not_hide_it_either(claims: EndClaims) -> None:
    claims.take(claim("failed", key="T0/env-1.json"), epoch_seconds=1000)
    for generation in (1, 2):
        claims.take(claim("failed", generation, key=f"T{generation}/env-1.json", provisional=True), epoch_seconds=1000)
    taken = claims.take(claim("succeeded", 3, key="T3/env-1.json"), epoch_seconds=1000)
    assert taken.replaced_key == "T0/env-1.json"


def test_an_object_of_the_same_key_is_overwritten_not_removed(claims: EndClaims) -> None:
    claims.take(claim(), epoch_seconds=1000)
    assert claims.take(claim(generation=1), epoch_seconds=1000).replaced_key is None


@pytest.mark.rule("11.sink.provisional")
@pytest.mark.parametrize("phase", ["succeeded", "failed"])
def test_an_end_of_the_same_generation_replaces_a_provisional_one(claims: EndClaims, phase: str) -> None:
    assert claims.take(claim("failed", provisional=True), epoch_seconds=1000).claim.is_provisional
    result = claims.take(claim(phase, position=3), epoch_seconds=1000)
    assert (result.outcome, result.claim) == ("taken", claim(phase, position=3))
    assert claims.take(claim("canceled"), epoch_seconds=1000).outcome == "refused"


@pytest.mark.rule("11.sink.provisional")
@pytest.mark.parametrize("later", [claim("canceled"), claim("succeeded", provisional=True)])
def test_a_cancellation_and_another_provisional_end_lose_to_a_provisional_one(claims: EndClaims, later: Claim) -> None:
    claims.take(claim("failed", provisional=True), epoch_seconds=1000)
    assert claims.take(later, epoch_seconds=1000).outcome == "refused"


@pytest.mark.rule("11.sink.provisional")
def test_a_provisional_end_never_replaces_another(claims: EndClaims) -> None:
    claims.take(claim(), epoch_seconds=1000)
    assert claims.take(claim("failed", provisional=True), epoch_seconds=1000).outcome == "refused"
    again = claims.take(claim(provisional=True), epoch_seconds=1000)
    assert (again.outcome, again.claim.is_provisional) == ("taken", False)


@pytest.mark.rule("11.sink.stale")
@pytest.mark.parametrize(("generation", "position"), [(1, 2), (1, 0), (0, 9)])
def test_an_end_at_or_below_the_pause_is_stale(
    claims: EndClaims, client: "DynamoDBClient", generation: int, position: int
) -> None:
    write_pause(client, generation=1, epoch=2)
    made = claim("failed", generation, position=position)
    result = claims.take(made, epoch_seconds=1000)
    assert (result.outcome, result.claim) == ("stale", made)
    assert claims.holder("env-1") is None


@pytest.mark.rule("11.sink.stale")
@pytest.mark.parametrize(("generation", "position"), [(1, 3), (2, 0)])
def test_an_end_beyond_the_pause_is_taken(
    claims: EndClaims, client: "DynamoDBClient", generation: int, position: int
) -> None:
    write_pause(client, generation=1, epoch=2)
    taken = claims.take(claim("succeeded", generation, position=position), epoch_seconds=1000)
    assert (taken.outcome, taken.replaced_key) == ("taken", None)
    assert claims.holder("env-1") == claim("succeeded", generation)


@pytest.mark.rule("11.sink.stale")
def test_a_stale_end_is_not_taken_for_a_repetition(claims: EndClaims, client: "DynamoDBClient") -> None:
    claims.take(claim("failed", provisional=True), epoch_seconds=1000)
    write_pause(client, generation=0, epoch=2)
    result = claims.take(claim("failed", position=2), epoch_seconds=1000)
    assert (result.outcome, result.claim.is_provisional) == ("stale", True)
    assert claims.take(claim("failed", position=3), epoch_seconds=1000).outcome == "taken"


@pytest.mark.rule("11.sink.provisional")
@pytest.mark.parametrize(("epoch", "outcome"), [(1, "refused"), (2, "taken"), (3, "taken")])
def test_a_cancellation_after_a_pause_replaces_the_provisional_end_before_it(
    claims: EndClaims, epoch: int, outcome: str
) -> None:
    """The dead letter was sent again, and its envelope paused; it was canceled in that pause, or after it."""
    claims.take(claim("failed", position=2, provisional=True), epoch_seconds=1000)
    assert claims.note_pause("env-1", 0, epoch, epoch_seconds=1000) is None
    assert claims.take(claim("canceled", position=4), epoch_seconds=1000).outcome == outcome
    holder = claims.holder("env-1")
    assert holder is not None
    assert holder.phase == ("canceled" if outcome == "taken" else "failed")


def test_the_holder_is_the_claim_that_counts(claims: EndClaims) -> None:
    assert claims.holder("env-1") is None
    claims.take(claim(), epoch_seconds=1000)
    claims.take(claim("failed"), epoch_seconds=1000)
    assert claims.holder("env-1") == claim()


@pytest.mark.rule("11.pause.noted")
def test_of_several_pauses_the_last_counts_in_any_order(claims: EndClaims, client: "DynamoDBClient") -> None:
    for generation, epoch in ((0, 2), (0, 7), (0, 2), (0, 7)):
        assert claims.note_pause("env-1", generation, epoch, epoch_seconds=1000) is None
    assert noted(client) == (0, 7)
    assert claims.note_pause("env-1", 1, 3, epoch_seconds=1000) is None
    assert claims.note_pause("env-1", 0, 9, epoch_seconds=1000) is None
    assert noted(client) == (1, 3)


@pytest.mark.rule("11.pause.noted")
@pytest.mark.parametrize(
    ("generation", "provisional", "may_pause"),
    [(0, False, False), (0, True, True), (1, False, False), (1, True, False)],
)
def test_an_ended_envelope_does_not_pause(
    claims: EndClaims, generation: int, provisional: bool, may_pause: bool
) -> None:
    claims.take(Claim("env-1", generation, "failed", "failed/env-1.json", 1, provisional), epoch_seconds=1000)
    assert (claims.note_pause("env-1", 0, 1, epoch_seconds=1000) is None) == may_pause
    assert claims.note_pause("env-1", 2, 1, epoch_seconds=1000) is None


@pytest.mark.rule("11.pause.noted")
def test_a_pause_that_ended_with_its_task_is_over(claims: EndClaims) -> None:
    assert claims.note_pause("env-1", 0, 1, epoch_seconds=1000) is None
    claims.take(Claim("env-1", 0, "canceled", "canceled/env-1.json", 2), epoch_seconds=1000)
    assert claims.note_pause("env-1", 0, 1, epoch_seconds=1000) is not None
    assert claims.note_pause("env-1", 0, 0, epoch_seconds=1000) is not None


def noted(client: "DynamoDBClient") -> tuple[int, int]:
    """Generation and epoch of the noted pause."""
    key = {"pk": {"S": "env-1"}, "sk": {"S": "claim"}}
    item = client.get_item(TableName="asya-shop-sink", Key=key)["Item"]
    return int(item["pause_generation"]["N"]), int(item["pause_epoch"]["N"])


def moment(epoch_seconds: float) -> datetime:
    return datetime.fromtimestamp(epoch_seconds, UTC)


@pytest.mark.rule("11.sink.claimed-at")
@pytest.mark.parametrize("provisional", [False, True])
def test_a_repetition_keeps_the_time_of_the_claim(claims: EndClaims, provisional: bool) -> None:
    assert claims.take(claim(), epoch_seconds=1000.25).claimed_at == moment(1000.25)
    for later in (claim(provisional=provisional), claim("failed"), claim("failed", provisional=True)):
        assert claims.take(later, epoch_seconds=2000).claimed_at == moment(1000.25)


@pytest.mark.rule("11.sink.claimed-at")
@pytest.mark.parametrize("later", [claim("failed"), claim("failed", 1), claim("failed", 1, provisional=True)])
def test_a_claim_that_replaces_another_one_has_its_own_time(claims: EndClaims, later: Claim) -> None:
    claims.take(claim("failed", provisional=True), epoch_seconds=1000)
    for seconds in (2000, 3000):
        result = claims.take(later, epoch_seconds=seconds)
        assert (result.outcome, result.claimed_at) == ("taken", moment(2000))


@pytest.mark.rule("11.sink.claimed-at")
def test_a_pause_that_is_noted_later_keeps_the_time_of_a_provisional_end(claims: EndClaims) -> None:
    claims.take(claim("failed", position=5, provisional=True), epoch_seconds=1000)
    assert claims.note_pause("env-1", 0, 2, epoch_seconds=2000) is None
    assert claims.take(claim("failed", position=5, provisional=True), epoch_seconds=3000).claimed_at == moment(1000)


@pytest.mark.rule("11.sink.claim.owner")
@pytest.mark.parametrize("provisional", [True, False])
def test_an_end_of_another_owner_is_refused(claims: EndClaims, *, provisional: bool) -> None:
    held = replace(claim(), owner="AIDAALICE")
    assert claims.take(held, epoch_seconds=1000).outcome == "taken"
    # A repetition, another phase and a later generation would all count for the owner, or finish its object.
    for forged in (claim(provisional=provisional), claim("failed"), claim("failed", 9999)):
        result = claims.take(replace(forged, owner="AIDAEVE"), epoch_seconds=1000)
        assert (result.outcome, result.claim.key, result.replaced_key) == ("refused", held.key, None)
    assert claims.take(held, epoch_seconds=1000).outcome == "taken"
    assert claims.take(replace(claim("failed", 1), owner="AIDAALICE"), epoch_seconds=1000).outcome == "taken"


@pytest.mark.rule("11.sink.claim.owner")
def test_an_end_that_names_no_owner_takes_nothing_from_its_owner(claims: EndClaims) -> None:
    """The letter of a raw message may not say whose it is; its redrive does."""
    assert claims.take(claim("failed", provisional=True), epoch_seconds=1000).outcome == "taken"
    assert claims.take(replace(claim("succeeded"), owner="AIDAALICE"), epoch_seconds=1000).outcome == "taken"
    assert claims.take(claim(generation=1), epoch_seconds=1000).outcome == "taken"
    assert claims.take(replace(claim(generation=2), owner="AIDAEVE"), epoch_seconds=1000).outcome == "refused"
