"""The feed of push notifications: which changes it passes on, and when a batch comes again."""

from collections.abc import Mapping
from typing import Any

from asya.capabilities.a2a.lambdas.push import is_watched
from asya.tasks.aws.items import WATCHED
from asya_local.dev.event_sources import TableChanges


def change(sort: str = "record", *, watched: bool | None = True) -> dict[str, Any]:
    image = {} if watched is None else {WATCHED: {"BOOL": watched}}
    return {"dynamodb": {"Keys": {"pk": {"S": "t-1"}, "sk": {"S": sort}}, "NewImage": image}}


class FakeStreams:
    """A stream with one change behind each iterator."""

    def __init__(self, *records: dict[str, Any]) -> None:
        self.records = records

    def get_records(self, *, ShardIterator: str) -> dict[str, Any]:  # noqa: N803 - AWS's name
        number = int(ShardIterator)
        return {"Records": list(self.records[number : number + 1]), "NextShardIterator": str(number + 1)}


def test_only_records_that_an_agent_watches_are_passed_on() -> None:
    assert is_watched(change())
    assert not any(map(is_watched, (change(watched=False), change(watched=None), change("0#000001"))))
    events: list[Mapping[str, Any]] = []
    changes = TableChanges(FakeStreams(change("0#000001"), change()), "tasks", events.append, lambda *_: None)
    assert changes.pass_on("0") == "1"
    assert events == []
    assert changes.pass_on("1") == "2"
    assert events == [{"Records": [change()]}]


def test_a_batch_that_fails_comes_again() -> None:
    def fail(_event: Mapping[str, Any]) -> None:
        raise ValueError("no queue")

    told: list[str] = []
    changes = TableChanges(FakeStreams(change()), "tasks", fail, lambda _level, text: told.append(text))
    assert changes.pass_on("0") == "0"
    assert told == ["push notifications: ValueError: no queue"]
