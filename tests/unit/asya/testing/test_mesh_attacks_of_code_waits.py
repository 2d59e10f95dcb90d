"""Code of one light actor tries to answer pauses, to skip waits, and to lead retries elsewhere (`protocol §11`)."""

import json
from datetime import timedelta

import pytest

from asya.protocol import names
from asya.protocol.pause import TaskPause
from asya.protocol.times import format_time
from asya.tasks.view import TaskView
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from asya.testing.errors import RefusedError
from asya.testing.run import Run
from tests.doubles.attacked_by_code import PAID, Attempt, body_of, check, held, new_bank, paid, put


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


def as_a_retry_of_another_actor(bank: Mesh, _run: Run) -> None:
    mine = held(bank)
    for target in ("work", "approve", "x-checkpoint"):
        due = {"x-asya-wait": {"since": bank.now.isoformat(), "until": bank.now.isoformat()}}
        for more in ({}, due):
            put(bank, "x-wait", body_of(mine, "eve", "retrying", **{"x-asya-route-override": {"eve": target}}, **more))
    bank.travel(minutes=2)
    assert {sent.route.curr for sent in bank.sent(mine.id)} <= {"eve", ""}


ATTEMPTS = {
    "a retry that leads elsewhere": Attempt(paid, as_a_retry_of_another_actor, PAID),
}


@pytest.mark.rule("4.keys.checked", "4.statements.refused")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    check(bank, ATTEMPTS[name])


@pytest.mark.rule("11.resume.since", "11.callback.post")
@pytest.mark.slow
def test_an_answer_names_the_question_that_was_read_and_counts_for_no_other_one(bank: Mesh) -> None:
    """`work` has held the task, may send to the pause, and asks another question while somebody reads the first one."""

    def pause() -> TaskPause:
        view: TaskView = bank.ask("GET", f"/api/v1/mesh/{run.id}", TaskView)
        assert view.pause is not None
        return view.pause

    def answer(since: str) -> None:
        bank.ask("POST", f"/api/v1/mesh/{run.id}/resume", None, body={"input": {"approved": True}, "since": since})

    run = paid(bank)
    read = pause()
    *_, mine = bank.sent(run.id)
    route = {"prev": ["work", "work"], "curr": "approve", "next": []}
    put(bank, "approve", body_of(mine, "approve") | {"route": route, "payload": {"amount": 999}}, by="work")
    bank.cloud.run_until_idle()
    assert pause().since != read.since
    with pytest.raises(RefusedError, match="is in a later pause"):
        answer(read.since)
    assert run.status == "paused"
    answer(pause().since)
    bank.cloud.run_until_idle()
    assert run.result == {"amount": 999, "approved": True}


@pytest.mark.rule("3.wait", "11.wait.stands")
@pytest.mark.parametrize("actor", ["nap", "stand"])
@pytest.mark.parametrize(
    ("to_x_wait", "days"), [(False, -400), (False, -1), (False, 0), (False, 1), (False, 400), (True, -1), (True, 1)]
)
def test_an_actor_skips_no_wait_behind_it(bank: Mesh, actor: str, to_x_wait: bool, days: int) -> None:
    """Only the sweep says that a wait is over, whatever times a header names."""
    bank.fail("eve", ConnectionError("again"))
    given = json.dumps({"payload": {"amount": 2}}).encode()
    answer = bank.cloud.request("POST", "/api/v1/mesh?actor=eve", given, {}, user_arn=TEST_USER, user_id="AIDATEST")
    bank.cloud.finish()
    mine = bank.sent(json.loads(answer["body"])["id"])[0]
    moment = format_time(bank.now + timedelta(days=days))
    wait = {"since": moment, "until": moment}
    put(bank, names.WAIT if to_x_wait else actor, body_of(mine, actor, **{"x-asya-wait": wait}), by="helper")
    bank.travel(days=min(max(0, days), 2), minutes=2)
    assert b"forged" not in bank.objects.get(f"results/succeeded/{mine.id}.json", b"")
