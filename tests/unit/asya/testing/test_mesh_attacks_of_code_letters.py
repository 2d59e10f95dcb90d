"""Code of one light actor tries letters of the gateway, and those of an earlier generation (`protocol §12`)."""

import pytest

from asya.protocol.headers import KEY
from asya.testing import Mesh
from asya.testing.errors import RefusedError
from asya.testing.run import Run
from asya.testing.services.roles import role_id
from tests.doubles.attacked_by_code import PAID, Attempt, body_of, check, new_bank, paid, put


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


def redriven(bank: Mesh) -> Run:
    """A task that `helper` has held, and that an operator has redriven from another actor since."""
    bank.kill_during("work", times=5)
    run = bank.send("helper", {"amount": 1}, then=["work", "nap"])
    bank.travel(minutes=3)
    bank.redrive("work")
    assert run.status == "running"
    return run


def as_sent_by_the_gateway(bank: Mesh, run: Run) -> None:
    last = bank.sent(run.id)[-1]
    for first in ("x-gateway-api", "x-sink", "x-pause-sweep"):
        attribute = {"asya-first-sender": {"DataType": "String", "StringValue": role_id(first)}}
        for door, phase in (("x-sink", "failed"), ("x-sump", "failed"), ("x-resume", "pending"), ("eve-dlq", "failed")):
            body = body_of(last, door, phase)
            body["headers"].pop(KEY, None)
            put(bank, door, body, attributes=attribute)


def as_an_earlier_holder(bank: Mesh, run: Run) -> None:
    mine = bank.sent(run.id)[1]  # that of `helper`, which has the key of generation 0
    assert "x-asya-generation" not in mine.headers
    for door, phase in (("x-sink", "failed"), ("x-sump", "failed"), ("x-checkpoint", "pending"), ("nap", "pending")):
        put(bank, door, body_of(mine, door, phase, **{"x-asya-generation": 1}), by="helper")
    put(bank, "nap", body_of(mine, "nap"), by="helper")
    put(bank, "helper-dlq", body_of(mine, "helper"), by="helper")
    bank.travel(minutes=2)
    with pytest.raises(RefusedError, match="another dead letter of it was redriven"):
        bank.redrive("helper")


ATTEMPTS = {
    "a letter of the gateway, by an attribute": Attempt(paid, as_sent_by_the_gateway, PAID),
    "a task of an earlier generation": Attempt(redriven, as_an_earlier_holder, {"amount": 1}),
}


@pytest.mark.rule("4.keys.checked", "4.statements.refused", "12.refused")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    check(bank, ATTEMPTS[name])
