"""Code of one light actor sends messages of odd forms and sizes to the functions of the mesh (`docs/security.md`, actor.blocks)."""

import json

import pytest

from asya.protocol import ids
from asya.testing import Mesh
from asya.testing.run import Run
from tests.doubles.attacked_by_code import (
    SUMMED,
    Attempt,
    Body,
    body_of,
    check,
    held,
    left,
    new_bank,
    put,
    sums,
    unstarted,
    write,
)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


def as_a_note_of_an_outage(bank: Mesh, _run: Run) -> None:
    for note in ({"S": "x"}, {"M": {"since": {"N": "1"}, "until": {"N": "1e120"}, "cause": {"S": "x"}}}):
        write(bank, "OUTAGE", "outage", DynamoDB=note, S3=note)


def as_values_that_grow(bank: Mesh, _run: Run) -> None:
    """Lists that lie deep, and pointers that lead deep."""
    mine = held(bank)
    zeros = f"{'[' * 800}{','.join('0' * 5_000)}{']' * 800}"
    for door, phase in (("x-checkpoint", "pending"), ("x-sump", "failed")):
        body = body_of(unstarted(bank), door, phase)
        put(bank, door, json.dumps(body | {"payload": "zeros"}).replace('"zeros"', zeros))
        bank.travel(minutes=1)
        kept = [len(text) for key, text in bank.cloud.objects.items() if f"/{body['id']}" in key]
        assert 10_000 < max(kept) < 100_000
    place = {"actor": "x-fan-in", "set_id": ids.set_id(mine.id, 0, 0), "origin_id": mine.id, "slice_index": 0}
    place |= {"slice_count": 1, "aggregation_key": "/a" * 20_000}
    put(bank, "x-fan-in", body_of(mine, "x-fan-in", **{"x-asya-fan-in": place}))
    bank.travel(minutes=1)


FAR = {"since": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59-14:00"}


ODD_HEADERS: tuple[Body, ...] = (
    {f"h{index}": "x" for index in range(2_000)},
    {"x-asya-route-override": {f"a{index}": f"a{index + 1}" for index in range(2_000)}},
    {"x-asya-route-override": {"x-sink": "x-checkpoint", "x-checkpoint": "x-resume", "x-resume": "x-checkpoint"}},
    {"x-asya-wait": FAR, "x-asya-not-before": FAR["until"], "x-asya-first-attempt": FAR["since"]},
    {"x-asya-pause": {"epoch": 10**30, "paused_at": FAR["until"], "prompt": "?", "fields": "x", "remaining": 1e308}},
    {
        "x-asya-resume-input": {"approved": True},
        "x-asya-resume-at": FAR["since"],
        "x-asya-circuit-open-since": FAR["since"],
    },
    {"traceparent": f"00-{'0' * 32}-{'0' * 16}-ff", "tracestate": "a=" * 20_000, "x-asya-generation": 9_999},
    {"x-asya-gateway-url": "http://169.254.169.254/latest", "x-asya-hook": "work", "x-asya-set-repeat": True},
)


ODD_VALUES: tuple[tuple[str, str], ...] = (
    ('"payload": {"forged": true}', f'"payload": {"[" * 900}{"1" * 100}{"]" * 900}'),
    ('"payload": {"forged": true}', f'"payload": {"9" * 100_000}'),
    ('"payload": {"forged": true}', f'"payload": 1e{"9" * 10_000}'),
    ('"payload": {"forged": true}', '"payload": "\\ud800"'),
    ('"prev": ["eve"]', f'"prev": {json.dumps(["eve"] * 3_000)}'),
    ('"next": []', f'"next": {json.dumps(["a" * 100_000])}'),
    ('"attempt": 2', f'"attempt": {10**30}'),
    ('"attempt": 2', '"attempt": 2, "created_at": "0001-01-01T00:00:00+14:00"'),
    ('"attempt": 2', '"attempt": 2, "deadline_at": "9999-12-31T23:59:59-14:00"'),
)


def as_messages_of_odd_forms(bank: Mesh, _run: Run) -> None:
    """Each is handled, or kept by x-sump: none stays on the queue of a function of the mesh, or becomes its dead letter."""
    doors = {
        "x-sink": "failed",
        "x-sump": "failed",
        "x-checkpoint": "pending",
        "x-resume": "pending",
        "x-fan-in": "pending",
    }
    before = left(bank, doors)
    for door, phase in doors.items():
        for odd in ODD_HEADERS:
            put(bank, door, body_of(unstarted(bank), door, phase, **odd))
        for found, instead in ODD_VALUES:
            text = json.dumps(body_of(unstarted(bank), door, phase))
            assert found in text
            put(bank, door, text.replace(found, instead, 1))
    bank.travel(minutes=1)
    assert left(bank, doors) == before


ATTEMPTS = {
    "a note of an outage of another form": Attempt(sums, as_a_note_of_an_outage, SUMMED),
    "messages of odd forms": Attempt(sums, as_messages_of_odd_forms, SUMMED),
    "values that grow": Attempt(sums, as_values_that_grow, SUMMED),
}


@pytest.mark.rule("4.keys.checked", "4.statements.refused", "4.outage.named")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    check(bank, ATTEMPTS[name])
