"""protocol §10: a queue that refuses the messages of one member, while the results of a run are routed."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from asya.function.aws import clients
from asya.heavy.lambdas import result_routing
from asya.heavy.lambdas.complete import Completion
from asya.heavy.results import RunOutcomes
from tests.doubles.heavy import HeavyWorld, TimedContext, done_result, failed_result, heavy_world

MEMBERS = 20
REFUSED = 9


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


class Queues:
    """Counts the messages that the queues accept, by queue; x-sink refuses all while `is_refused` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.accepted: Counter[str] = Counter()
        self.is_refused = True
        self._send = clients.sqs().send_message_batch
        monkeypatch.setattr(clients.sqs(), "send_message_batch", self._answer)

    def _answer(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> Any:  # noqa: N803
        if self.is_refused and QueueUrl.endswith("x-sink"):
            failed = [{"Id": entry["Id"], "Code": "AccessDenied", "SenderFault": True} for entry in Entries]
            return {"Successful": [], "Failed": failed}
        answer: Any = self._send(QueueUrl=QueueUrl, Entries=Entries)  # type: ignore[arg-type]
        self.accepted.update(QueueUrl.rsplit("-", 1)[1] for _ in Entries)
        return answer


def route(world: HeavyWorld, event: dict[str, Any]) -> bool:
    """Delivers the event of the run's end; whether its message is acknowledged."""
    completion = Completion(world.services_of("x-completion"), TimedContext())
    return not completion.process(event)["batchItemFailures"]


@pytest.mark.rule("10.refused", "13.operations.runs.outcomes")
@pytest.mark.slow
def test_10_a_refused_message_repeats_no_accepted_one_at_each_attempt(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MEMBERS):
        world.send(f"m{number:02d}", number, actor="stats")
    for _ in range(MEMBERS // 10):
        world.enqueue("stats")
    world.dispatch()
    members = [member.id for member in world.manifest(1, "stats").members]
    assert len(members) == MEMBERS
    # Member 9 has no frames, so it ends at x-sink; the others go on to publish.
    results = [done_result(index) if index == REFUSED else done_result(index, index) for index in range(MEMBERS)]
    world.write_results(1, results, actor="stats")
    world.set_state("run1", "SUCCESS")
    queues, event = Queues(monkeypatch), world.receive("x-completion")
    assert not route(world, event)
    assert queues.accepted == {"publish": MEMBERS - 1}
    for _ in range(3):
        assert not route(world, event)
    assert queues.accepted == {"publish": MEMBERS - 1}
    queues.is_refused = False
    assert route(world, event)
    # The accepted ones behind the refused one are sent once more; those before it are not.
    assert queues.accepted == {"publish": MEMBERS - 1 + MEMBERS - 1 - REFUSED, "sink": 1}
    assert [body["id"] for body in world.bodies("x-sink")] == [members[REFUSED]]
    record = world.services_of("x-completion").records.get("stats", 1)
    assert record is not None
    assert record.outcomes == RunOutcomes(succeeded=MEMBERS)


@pytest.mark.rule("13.operations.runs.outcomes")
@pytest.mark.parametrize("chunk", [1, 2, 3, 500])
def test_13_each_envelope_counts_once_however_often_routing_is_interrupted(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(result_routing, "CHUNK", chunk)
    for number in range(10):
        world.send(f"m{number:02d}", number, actor="stats")
    world.enqueue("stats")
    world.dispatch()
    # Even ones fail and end at x-sink. The run had no time for the last two, which run again.
    results = [done_result(index, 1, 2) if index % 2 else failed_result(index) for index in range(8)]
    world.write_results(1, results, actor="stats", unreached=8)
    world.set_state("run1", "SUCCESS")
    queues, event = Queues(monkeypatch), world.receive("x-completion")
    records = world.services_of("x-completion").records
    for _ in range(3):
        assert not route(world, event)
        half = records.get("stats", 1)
        assert half is None or half.outcomes is None or half.outcomes.total < 10
    queues.is_refused = False
    assert route(world, event)
    record = records.get("stats", 1)
    assert record is not None
    assert (record.state, record.outcomes) == ("closed", RunOutcomes(succeeded=4, failed=4, again=2))
