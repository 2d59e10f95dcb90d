"""protocol §11: one end per envelope and generation, by a claim in an emulated table."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from asya.crew.aws.end_claims import Claim, EndClaims
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


def claim(phase: str = "succeeded", generation: int = 0, key: str = "") -> Claim:
    return Claim("env-1", generation, phase, key or f"{phase}/env-1.json")


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


def test_an_object_of_the_same_key_is_overwritten_not_removed(claims: EndClaims) -> None:
    claims.take(claim(), epoch_seconds=1000)
    assert claims.take(claim(generation=1), epoch_seconds=1000).replaced_key is None
