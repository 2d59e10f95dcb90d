"""Two processes at the start of one task: each order of their writes, with each answer of the queue and deaths in between.

The first process takes longer than its lease, at any of its writes. Another one takes the start over there, and then the first
one goes on. In the end a third one repeats the start.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from asya.function.aws.submission_sender import MaybeSentError, NotSentError
from asya.function.hop import Delivery
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, MeshTable
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.idempotency import IdempotencyKey, InProgress, KeyClaim, lease_of
from asya.tasks.starts.submission import FirstMessage, Origin, first_envelope, read_submission
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo
from tests.doubles.tasks import at

MESH = MeshTable(namespace="shop", actors={"inspect": Actor(kind="handler")})
KEY = IdempotencyKey("trigger:nightly", "slot 1", "")
LEASE = lease_of(names.TRIGGERS)
ANSWERS = ("accepted", "refused", "no answer", "no answer, accepted", "died before", "died after")
WRITES = ("put_item", "update_item", "delete_item", "transact_write_items")
MOST_WRITES = 6


class DiedError(BaseException):
    """A process has died."""


@dataclass
class World:
    """The tables and the queue of the mesh.

    Attributes:
        sent: the messages that the queue has accepted.
        interrupt: what happens before the n-th write of a process from now on.
    """

    dynamo: MemoryDynamo = field(default_factory=lambda: MemoryDynamo({"tasks": new_table("tasks")}))
    sent: list[Envelope] = field(default_factory=list)
    interrupt: tuple[int, Callable[[], None]] | None = None

    @property
    def record(self) -> Any:
        """The record of the task; None without one."""
        return self.dynamo.tables["tasks"].items.get(("t1", "record"))

    def start(self, answer: str, seconds: float) -> str | None:
        """Start the task in a process of its own, whose send gets an answer; returns the code of an error."""
        process = Process(self, answer)
        client: Any = process
        tasks = Tasks(DynamoTaskStore(client, "tasks", 1e6), lambda _: None, threaded=False)
        keys = IdempotencyKeys(client, "tasks", 1e6, names.TRIGGERS)
        starter = TaskStarter(tasks, keys, process, lambda _: None)  # type: ignore[arg-type]
        with suppress(DiedError):
            try:
                starter.start_once(compose, KEY, "t1", at(seconds))
            except ApiError as error:
                return error.code
            except TaskStoreError:
                return "unavailable"
            return None
        return "died"


@dataclass
class Process:
    """The clients of a process: its calls reach the world, unless it is interrupted or dies."""

    world: World
    answer: str

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.world.dynamo, name)
        if name not in WRITES:
            return call

        def write(**request: Any) -> Any:
            self._pass()
            return call(**request)

        return write

    def send(self, delivery: Delivery) -> None:
        """Send a message as `SubmissionSender` does."""
        self._pass()
        if self.answer == "died before":
            raise DiedError
        if self.answer in ("accepted", "no answer, accepted", "died after"):
            self.world.sent.append(decode(delivery.body))
        if self.answer == "refused":
            raise NotSentError("throttled")
        if self.answer.startswith("no answer"):
            raise MaybeSentError("timed out")
        if self.answer == "died after":
            raise DiedError

    def _pass(self) -> None:
        """Take a step, and let another process go first if its turn has come."""
        if self.world.interrupt is None:
            return
        left, do = self.world.interrupt
        self.world.interrupt = (left - 1, do) if left > 1 else None
        if left == 1:
            do()


def compose(task_id: str, created_at: Any) -> FirstMessage:
    submission = read_submission(b'{"timeout": 60}', "inspect", MESH)
    envelope = first_envelope(submission, task_id, created_at, Origin("https://api", "00f067aa0ba902b7"))
    return FirstMessage(envelope, Delivery("inspect", encode(envelope), "next"))


def stories() -> Iterator[tuple[str, str, int]]:
    """The answers for both processes, and the step of the first one at which the other takes over."""
    yield from product(ANSWERS, ANSWERS, range(2, MOST_WRITES))


@pytest.mark.rule("13.start.fence")
@pytest.mark.parametrize("slow", ANSWERS)
def test_a_task_that_may_run_keeps_its_record_whoever_is_slow(slow: str) -> None:
    """And a repetition always starts it, with a message that is equal to each earlier one."""
    overtaken = 0
    for _, other, step in (story for story in stories() if story[0] == slow):
        world = World()

        def take_over(world: World = world, other: str = other) -> None:
            nonlocal overtaken
            overtaken += 1
            world.start(other, LEASE + 1)

        world.interrupt = (step, take_over)
        world.start(slow, 0)
        world.interrupt = None
        told = f"the other: {other}, at step {step}"
        if world.sent:
            assert world.record is not None, told
            assert world.record["owner"]["S"] == KEY.owner, told
        for again in range(2, 5):
            code = world.start("accepted", again * (LEASE + 1))
            assert code is None, told
        assert world.record is not None, told
        assert world.sent, told
        assert len({encode(envelope) for envelope in world.sent}) == 1, told
    assert overtaken >= len(ANSWERS)


@pytest.mark.rule("13.start.fence")
def test_a_key_that_stands_for_another_task_by_now_is_not_marked() -> None:
    """The key has expired while the first process was at its send, and another task has it."""
    world = World()
    keys = IdempotencyKeys(world.dynamo, "tasks", 60.0, names.TRIGGERS)  # type: ignore[arg-type]
    first = keys.claim(KEY, "t1", at(0))
    assert isinstance(first, KeyClaim)
    assert isinstance(keys.claim(KEY, "t2", at(61)), KeyClaim)
    keys.mark_sent(KEY, first)
    assert isinstance(keys.claim(KEY, "t3", at(62)), InProgress)


@pytest.mark.rule("13.start.idempotent")
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_start_that_sends_nothing_leaves_no_record(answer: str) -> None:
    """Unless nobody can know."""
    world = World()
    code = world.start(answer, 0)
    assert (world.record is None) is (code == "not_sent")
    sent = len(world.sent)
    assert world.start("accepted", LEASE + 1) is None
    assert (world.record is not None, len(world.sent)) == (True, 1 if answer == "accepted" else sent + 1)
