"""Code of one light actor tries to give and to end slices of sets that it does not hold (`protocol §4.keys`)."""

import pytest

from asya.protocol import ids
from asya.protocol.envelope import Envelope
from asya.testing import Mesh
from asya.testing.run import Run
from tests.doubles.attacked_by_code import SUMMED, Attempt, Body, body_of, check, headers_of, held, new_bank, put, sums


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


DOORS = (
    *((door, "pending") for door in ("x-fan-in", "gather", "x-checkpoint", "x-resume", "x-pause")),
    *(("x-sink", phase) for phase in ("succeeded", "failed", "canceled", "paused")),
    *(("x-sump", "failed"), ("helper-dlq", "pending"), ("helper-dlq", "failed")),
)
"""The queues of those who take a slice, or tell that it has ended."""


def first_slice(bank: Mesh, run: Run) -> Envelope:
    """Slice 1 of a set. The sender holds no other slice."""
    sent = (bank.sent(child)[-1] for child in bank.children_of(run.id))
    return next(each for each in sent if headers_of(each)["x-asya-fan-in"]["slice_index"] == 1)


def as_another_slice(bank: Mesh, run: Run) -> None:
    mine = first_slice(bank, run)
    place = headers_of(mine)["x-asya-fan-in"]
    for change in (
        {"slice_index": 2},
        {"slice_count": 2},
        {"actor": "gather"},
        {"slice_index": 0},
        {"aggregation_key": "/other"},
        {"origin_id": mine.id},
        {"slice_index": 0, "origin_id": mine.id},
    ):
        own = {"set_id": ids.set_id(mine.id, 0, 1), "origin_id": mine.id, "slice_index": 0, "outer": place | change}
        for door, phase in DOORS:
            for header in (place | change, place | own):
                body = body_of(mine, door.removesuffix("-dlq"), phase, **{"x-asya-fan-in": header})
                put(bank, door, body, by="helper")


def as_an_unreadable_slice(bank: Mesh, run: Run) -> None:
    place = headers_of(first_slice(bank, run))["x-asya-fan-in"]
    mine = held(bank)
    broken: list[Body] = [
        {"route": 5},
        {"status": {"phase": "failed", "deadline_at": "x"}},
        {"id": ""},
        {"payload": None},
    ]
    for door in ("x-sink", "x-sump", "x-fan-in", "x-checkpoint", "x-wait", "eve", "eve-dlq"):
        for index, change in enumerate(broken):
            reference = {"x-asya-payload-ref": {"key": "payloads/none", "size": 1, "sha256": "z"}} if index == 3 else {}
            header = {"x-asya-fan-in": place | {"slice_index": index % 3}, "x-asya-root": run.id} | reference
            put(bank, door, body_of(mine, door, "failed", **header) | {"parent_id": run.id} | change)


ATTEMPTS = {
    "the slices beside the one that it holds": Attempt(sums, as_another_slice, SUMMED),
    "a set, by what is no envelope": Attempt(sums, as_an_unreadable_slice, SUMMED),
}


@pytest.mark.rule("4.keys.checked", "4.keys.sets")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    check(bank, ATTEMPTS[name])
