"""Each statement of each function of the mesh, from each sender: what the declaration says is heard, all else is refused."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from asya import registry
from asya.capabilities.a2a.push import PushNotification
from asya.capabilities.fan_in.statements import DUE, LOST_SLICE, REPEAT, SLICE
from asya.capabilities.pauses.statements import PAUSE
from asya.capabilities.triggers.statements import FORMS
from asya.ends.statements import END as ENDED
from asya.ends.statements import FAILED_END
from asya.function.hop import PROBLEM
from asya.gateway.statements import END, NOTIFICATION, PROGRESS
from asya.heavy.statements import CANCELED, COMMIT, REQUEST, RUN_STATE, WATCH
from asya.protocol import ids
from asya.protocol.names import dlq_name, queue_name, runner_of
from asya.protocol.times import format_time
from asya.senders.envelopes import CREW, RETRY, START
from asya.senders.statements import Proof, Statement, proof_of, speaker_of
from asya.tasks.view import unknown_view
from asya.testing import Mesh
from asya.testing.permissions import of_queues
from asya.testing.services.roles import role_id
from tests.paths import PROJECT

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
actors:
  intake:
    handler: bank.same
    can_send_to: []
    resiliency: {policies: {default: {max_attempts: 2, initial_delay: 2d}}}
  payout: {handler: bank.same}
  approve: {kind: pause, pause: {prompt: "Pay?"}}
  nap: {kind: wait, wait: {for: 1h}, can_send_to: [payout]}
  gather: {kind: fan_in}
  crunch: {spark: {job: bank.crunch}}
tools:
  ask: {description: Asks, route: [intake]}
gateway: {notification_hosts: [localhost]}
triggers:
  nightly: {route: [intake], payload: {}, cron: "0 2 * * *"}
"""


@dataclass(frozen=True)
class Said:
    """A statement as a message.

    Attributes:
        at: the queue.
        about: the actor that it is about.
        instead: what the same message says from senders that may not say this.
        by_iam: whether IAM alone keeps it from roles of the mesh without code of users: the function takes it from each of them.
        is_stripped: whether what enters from outside loses the header that says it, and then starts nothing here.
        asked: whether the function asks AWS about the message, whose answer is none of the refusals.
        body: makes the message at a time. The tag tells it from all others.
    """

    statement: Statement
    at: str
    body: Callable[[str, str], Any]
    about: str | None = None
    instead: tuple[Statement, ...] = ()
    by_iam: bool = False
    is_stripped: bool = False
    asked: bool = False


def envelope(curr: str, prev: tuple[str, ...] = (), **more: Any) -> Callable[[str, str], Any]:
    def make(tag: str, at: str) -> Any:
        own = {"phase": "pending", "created_at": at, "updated_at": at, **more.get("status", {})}
        route = {"prev": list(prev), "curr": curr, "next": []}
        return {"id": tag, "route": route, "headers": more.get("headers", {}), "payload": 1, "status": own}

    return make


def message(**members: Any) -> Callable[[str, str], Any]:
    """A message with these members, in which `TAG` stands for the tag."""
    return lambda tag, _at: {name: tag if value is TAG else value for name, value in members.items()}


def detail(kind: str, **members: Any) -> Callable[[str, str], Any]:
    return message(**{"detail-type": kind, "detail": members})


def report(**members: Any) -> Callable[[str, str], Any]:
    return lambda tag, at: [{"id": tag, "at": at, **members}]


def bare(curr: str) -> Callable[[str, str], Any]:
    return lambda tag, _at: {"id": tag, "route": {"prev": [], "curr": curr, "next": []}, "payload": 1}


def commit(tag: str, _at: str) -> Any:
    return {"detail-type": "Object Created", "detail": {"object": {"key": tag}}}


def notification(tag: str, at: str) -> Any:
    return msgspec.to_builtins(PushNotification(config_id=tag, task=unknown_view(tag, None, at)))


TAG = object()
_ROUTE: Any = {"prev": [], "curr": "intake", "next": []}
_, CONTINUE_CREW = CREW
_, PAUSE_TASK = PAUSE
_PLACE = {"slice_index": 1, "slice_count": 2}
SAID = [
    Said(ENDED, "x-sink", envelope("", ("intake",), status={"phase": "succeeded", "reason": "Completed"})),
    Said(FAILED_END, "x-sump", envelope("intake", status={"phase": "failed", "reason": "Timeout"})),
    Said(LOST_SLICE, "gather", message(type="slice-ended", set_id=TAG, phase="failed", reason="Timeout", **_PLACE)),
    Said(DUE, "gather", message(type="set-due", set_id=TAG)),
    Said(REPEAT, "gather", envelope("gather", ("intake",), headers={"x-asya-set-repeat": True})),
    Said(RETRY, "x-wait", envelope("intake", status={"attempt": 2, "max_attempts": 2}), about="intake"),
    Said(REQUEST, "x-dispatch", message(actor="crunch"), about="crunch"),
    Said(PAUSE_TASK, "nap", envelope("nap", ("intake",)), instead=(START,), by_iam=True),
    Said(CONTINUE_CREW, "x-checkpoint", envelope("x-checkpoint", ("intake",)), instead=(START,), by_iam=True),
    Said(START, "crunch", bare("crunch"), instead=(CONTINUE_CREW,), by_iam=True),
    Said(
        SLICE,
        "gather",
        envelope(
            "gather",
            ("intake",),
            headers={
                "x-asya-fan-in": {"actor": "gather", "set_id": "s", "origin_id": "o", "aggregation_key": "", **_PLACE}
            },
        ),
        instead=(START,),
        is_stripped=True,
    ),
    Said(COMMIT, "x-completion", commit, asked=True),
    Said(NOTIFICATION, "x-push", notification),
    Said(RUN_STATE, "x-completion", detail("EMR Serverless Job Run State Change", state="RUNNING")),
    Said(WATCH, "x-completion", detail("asya.watch-run", run_id="other", job_run_id="j")),
    Said(CANCELED, "x-completion", detail("asya.task-canceled", taskId="t")),
    Said(PROGRESS, "x-reports", report(status="received", data={"actor": "intake", "route": _ROUTE}), about="intake"),
    Said(END, "x-ends", report(status="succeeded", data={"actor": "intake"})),
    Said(FORMS["slot"], "x-triggers", message(trigger=TAG, slot="2026-11-26T02:00:00Z")),
    Said(FORMS["webhook"], "x-triggers", message(trigger=TAG, webhook={})),
    Said(FORMS["fired"], "x-triggers", message(trigger=TAG, fired="f", at="2026-11-26T02:00:00Z")),
    Said(FORMS["backfill"], "x-triggers", message(backfill=TAG)),
    Said(FORMS["lane"], "x-triggers", message(trigger="nightly", lane=TAG)),
    Said(FORMS["ended"], "x-triggers", message(ended=TAG, kind="trigger", name="other")),
    Said(FORMS["event"], "x-triggers", message(trigger=TAG, event={})),
]
ELSEWHERE = {
    "end a pause": "unit/asya/testing/test_mesh_authority.py::test_code_of_an_actor_resumes_no_pause",
}
"""The statements that have no cell, with a test of each: from others the message is an envelope that goes on."""
_REFUSALS = (
    " may not ",
    "x-asya-key",
    "only roles of the mesh",
    "is no role of the mesh",
    "ParseError",
    "has no header x-asya-fan-in",
    "unknown message dropped",
)
"""The texts of refusals: the statement is not the sender's, its message starts no task, or AWS does not confirm it."""
tags = count()


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    path = tmp_path_factory.mktemp("bank")
    (path / "handlers").mkdir()
    (path / "spark_jobs").mkdir()
    (path / "handlers" / "bank.py").write_text("def same(payload):\n    return payload\n")
    (path / "spark_jobs" / "bank.py").write_text("def crunch(spark, frame):\n    return frame\n")
    (path / "mesh.yaml").write_text(MESH)
    return Mesh(path / "mesh.yaml")


def refusals(mesh: Mesh) -> list[str]:
    """What the mesh has written of messages that do not count: in logs, objects and dead letters."""
    letters = mesh.cloud.queues.queues[dlq_name("bank", "x-triggers")].messages
    kept = [letter.body + json.dumps(letter.attributes.get(PROBLEM, {})) for letter in letters]
    # An object of the index has rows of several messages.
    objects = ((key, body) for key, body in mesh.cloud.objects.items() if "/index/" not in key)
    stored = [key + body.decode("utf-8", "replace") for key, body in objects]
    return [text for text in (*mesh.log, *kept, *stored) if any(word in text for word in _REFUSALS)]


def is_judged(mesh: Mesh, sender: str | None, actor: str, *, is_heard: bool) -> bool:
    """Whether the function itself decides: IAM lets the sender send to the queue, or it is no role of this mesh.

    The function takes envelopes of each role without code of users that can send some statement to its queue.
    """
    permissions, queue = mesh.cloud.permissions, {"QueueUrl": f"https://sqs/{queue_name('bank', actor)}"}
    if sender in (None, "removed"):
        return True
    try:
        permissions.check(str(sender), list(of_queues("send_message", queue, permissions.addresses)))
    except ClientError:
        return False
    return is_heard or speaker_of(mesh.cloud.table, sender) is not None


@pytest.mark.slow
@pytest.mark.rule("4.statements", "4.statements.sets", "4.statements.refused")
@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said.at}-{said.statement.name}")
def test_a_statement_counts_from_those_who_may_say_it(bank: Mesh, said: Said) -> None:
    table, sent = bank.cloud.table, {}
    for sender in (*table.actors, *(each.name for each in registry.functions_of(table)), "removed", None):
        tag = f"cell-{next(tags):04}"
        body = json.dumps(said.body(tag, format_time(bank.now)))
        by = role_id(sender) if sender is not None else "AIDAEVE"
        message_id = bank.cloud.queues.send(queue_name("bank", said.at), body, sender=None, by=by)
        sent[sender] = (tag, message_id, ids.id_of_message(message_id))
    bank.travel(minutes=3)
    found = refusals(bank)
    counts = {sender: not any(each in text for text in found for each in known) for sender, known in sent.items()}
    hearer = said.at if said.at in table.actors else registry.queues_of(table)[said.at][0].name
    # No message bears a key, and EMR Serverless knows no such run. `test_mesh_task_keys` has statements with keys.
    without = {None, Proof.KEY} if said.asked else {None, Proof.KEY, Proof.SERVICE}

    def proofs(sender: str | None) -> set[Proof | None]:
        said_by, *other = (
            proof_of(one, table, sender and runner_of(sender), at=hearer, about=said.about)
            for one in (said.statement, *said.instead)
        )
        # With a status no envelope of code starts a task.
        starts = sender is None and not said.is_stripped
        return {said_by, *(proof for proof in other if starts or proof is not Proof.CLAIM)}

    expected = {each: bool(proofs(each) - without) for each in sent}
    judged = [each for each in sent if not said.by_iam or is_judged(bank, each, said.at, is_heard=expected[each])]
    assert {each for each in judged if counts[each] != expected[each]} == set()
    assert {None, "removed"} <= {*judged}


def test_each_statement_is_said_here_or_elsewhere() -> None:
    said = {each.statement.text for each in SAID}
    functions = (*registry.PRODUCT.functions.values(), *registry.PRODUCT.actor_functions.values())
    declared = {statement.text for function in functions for statement in function.hears}
    assert declared - said == set(ELSEWHERE)
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (PROJECT / "tests" / file).read_text()
