"""Tests the accounts of chaos: each kind of loss is a violation that names its envelope."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.chaos.accounts import Evidence, Record, Stored, accounted, violations
from tests.chaos.envelopes import draw_envelopes
from tests.chaos.statuses import Sighting

if TYPE_CHECKING:
    from collections.abc import Callable

ENVELOPES = draw_envelopes(3, 40, 100)
LIGHT = next(each for each in ENVELOPES if each.flow == "light")
SET = next(each for each in ENVELOPES if each.flow == "set")
IDS = {each.name: f"id-{each.name}" for each in ENVELOPES}
LIGHT_ID, SET_ID = IDS[LIGHT.name], IDS[SET.name]
SUCCESS = Record("succeeded", "Completed")


def complete() -> Evidence:
    """The evidence of a run without any violation."""
    records = dict.fromkeys(IDS.values(), SUCCESS)
    for each in ENVELOPES:
        records |= dict.fromkeys(each.children(IDS[each.name]), Record("succeeded", parent_id=IDS[each.name]))
    return Evidence(
        ids=IDS,
        records=records,
        objects={IDS[each.name]: [Stored("succeeded", each.result)] for each in ENVELOPES},
        effects={(actor, name): 2 for each in ENVELOPES for actor, names in each.effects.items() for name in names},
        finals={LIGHT_ID: 1},
    )


def test_a_complete_run_has_no_violation() -> None:
    assert violations(ENVELOPES, complete()) == []
    assert accounted(ENVELOPES, complete()) == len(ENVELOPES)


def without(name: str, key: Any) -> Callable[[Evidence], Evidence]:
    def change(evidence: Evidence) -> Evidence:
        kept: dict[str, Any] = {name: {each: value for each, value in getattr(evidence, name).items() if each != key}}
        return replace(evidence, **kept)

    return change


def with_item(name: str, key: Any, value: Any) -> Callable[[Evidence], Evidence]:
    def change(evidence: Evidence) -> Evidence:
        changed: dict[str, Any] = {name: {**getattr(evidence, name), key: value}}
        return replace(evidence, **changed)

    return change


DEAD = Record("failed", "DeliveryExhausted", "price", "price did not finish")
TWICE = [Stored("succeeded", LIGHT.result), Stored("failed", {})]


@pytest.mark.parametrize(
    ("change", "kind", "envelope_id"),
    [
        (without("records", LIGHT_ID), "no record", LIGHT_ID),
        (with_item("records", LIGHT_ID, Record("running", actor="price")), "no end", LIGHT_ID),
        (without("objects", LIGHT_ID), "no object", LIGHT_ID),
        (with_item("objects", LIGHT_ID, TWICE), "several objects", LIGHT_ID),
        (with_item("objects", LIGHT_ID, [*TWICE[:1], Stored("sump")]), "several objects", LIGHT_ID),
        (with_item("objects", LIGHT_ID, [*TWICE[:1], *TWICE[:1]]), "several objects", LIGHT_ID),
        (with_item("objects", LIGHT_ID, [Stored("failed", {})]), "object and record", LIGHT_ID),
        (with_item("objects", LIGHT_ID, [Stored("succeeded", {"name": "other"})]), "wrong result", LIGHT_ID),
        (without("effects", ("price", LIGHT.name)), "missing effect", LIGHT_ID),
        (without("records", SET.children(SET_ID)[0]), "wrong end of a slice", SET.children(SET_ID)[0]),
        (with_item("records", "stranger", SUCCESS), "unknown task", "stranger"),
        (with_item("objects", "stranger", [Stored("sump")]), "unknown object", "stranger"),
        (with_item("finals", LIGHT_ID, 2), "final events", LIGHT_ID),
        (with_item("queues", "asya-chaos-price-dlq", 3), "queue not empty", ""),
    ],
)
def test_a_loss_is_a_violation(change: Callable[[Evidence], Evidence], kind: str, envelope_id: str) -> None:
    (violation,) = violations(ENVELOPES, change(complete()))
    assert (violation.kind, violation.envelope_id) == (kind, envelope_id)


def test_an_envelope_that_failed_is_a_violation_with_what_its_record_says() -> None:
    evidence = with_item("objects", LIGHT_ID, [Stored("failed"), Stored("sump")])(
        with_item("records", LIGHT_ID, DEAD)(complete())
    )
    (violation,) = violations(ENVELOPES, evidence)
    assert violation.kind == "wrong end"
    assert "failed DeliveryExhausted at price: price did not finish" in violation.text
    assert accounted(ENVELOPES, evidence) == len(ENVELOPES) - 1


def test_an_envelope_that_was_never_accepted_is_a_violation() -> None:
    evidence = without("ids", LIGHT.name)(complete())
    kinds = [each.kind for each in violations(ENVELOPES, evidence)]
    assert kinds == ["not accepted", "unknown task"]


def test_a_status_that_went_back_is_a_violation() -> None:
    back = [Sighting(1, "succeeded"), Sighting(2, "running")]
    (violation,) = violations(ENVELOPES, replace(complete(), sightings=({}, {LIGHT_ID: back})))
    assert (violation.kind, violation.envelope_id) == ("status went back", LIGHT_ID)
