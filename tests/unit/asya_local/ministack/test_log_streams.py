"""Functions that share a log group have streams with their names, and searches find each event once, with an id of its own."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya_local.ministack.log_streams import install

SHARED, OWN = "/aws/lambda/asya-shop-x-crew", "/aws/lambda/asya-shop-bill"
NO_SUCH_GROUP = {"error": "ResourceNotFoundException"}


def append(stream: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """Append as MiniStack does: in the order of the times, and of the writing."""
    stream["events"] = sorted([*stream["events"], *events], key=lambda event: event["timestamp"])


class FakeServices:
    """The parts of MiniStack's services that are replaced, and those that the replacements call."""

    def __init__(self) -> None:
        self.emitted: list[str] = []
        groups: dict[str, Any] = {SHARED: {"streams": {}}, OWN: {"streams": {}}}
        self.streams = groups[SHARED]["streams"]
        self.functions = SimpleNamespace(
            _emit_lambda_logs=lambda func, *_, **__: self.emitted.append(func["FunctionName"])
        )
        self.logs = SimpleNamespace(
            _log_groups=groups,
            _log_events_lock=threading.Lock(),
            _resolve_log_group_name=lambda data: data["logGroupName"],
            _filter_log_events=lambda _: NO_SUCH_GROUP,
            _create_log_stream=lambda data: self.create(data["logStreamName"], data["logGroupName"]),
            _append_log_events=append,
            _compile_filter_pattern=lambda pattern: lambda message: pattern in message,
            json_response=lambda answer: answer,
            error_response_json=lambda code, _message, _status: {"error": code},
        )
        install(self.functions, self.logs)  # type: ignore[arg-type]

    def create(self, stream: str, group: str = SHARED) -> None:
        self.logs._log_groups[group]["streams"].setdefault(stream, {"events": []})

    def write(self, stream: str, at: int, *lines: str) -> None:
        self.create(stream)
        append(self.streams[stream], [{"timestamp": at, "message": line, "ingestionTime": at} for line in lines])

    def call(self, name: str, group: str | None, text: str) -> None:
        config = {"FunctionName": name, "MemorySize": 512} | ({"LoggingConfig": {"LogGroup": group}} if group else {})
        self.functions._emit_lambda_logs(config, "r1", text, False, 3)

    def search(self, **query: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.logs._filter_log_events({"logGroupName": SHARED} | query)
        return answer

    def lines(self, **query: Any) -> list[str]:
        return [event["message"] for event in self.search(**query)["events"]]


def test_a_shared_group_has_streams_with_the_names_of_functions() -> None:
    services = FakeServices()
    services.call("asya-shop-x-sink", SHARED, "one\ntwo")
    services.call("asya-shop-x-sump", SHARED, "")
    services.call("asya-shop-bill", OWN, "")
    services.call("asya-shop-ship", None, "")
    services.call("asya-shop-gone", "/no/such/group", "")
    assert services.emitted == ["asya-shop-bill", "asya-shop-ship", "asya-shop-gone"]
    sink, sump = services.streams
    day, named = sink[:10], sink[11:]
    assert named.startswith("asya-shop-x-sink[$LATEST][")
    assert sump[11:].startswith("asya-shop-x-sump[$LATEST][")
    assert [each.partition(":")[0] for each in services.lines(logStreamNamePrefix=f"{day}/asya-shop-x-sink[")] == [
        "START RequestId",
        "one",
        "two",
        "END RequestId",
        "REPORT RequestId",
    ]
    assert services.lines(logStreamNamePrefix=f"{day}/asya-shop-x-si[") == []
    assert len(services.lines()) == 8
    assert services.search(logGroupName="/no/such/group", logStreamNamePrefix=day) == NO_SUCH_GROUP


def test_a_search_goes_by_names_times_and_pattern() -> None:
    services = FakeServices()
    for at in (1, 2, 3):
        services.write("a", at, f"a{at}")
        services.write("b", at, f"b{at}")
    assert services.lines(startTime=2) == ["a2", "b2", "a3", "b3"]
    assert services.lines(endTime=1) == ["a1", "b1"]
    assert services.lines(logStreamNames=["b"], startTime=2, endTime=2) == ["b2"]
    assert services.lines(filterPattern="3") == ["a3", "b3"]


LINES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(1, 5), st.sampled_from(["same", "other"])),
    max_size=12,
)
"""Streams, times, how often a line is printed, and the line."""


@given(before=LINES, meanwhile=LINES, limit=st.integers(1, 7), pattern=st.sampled_from(["", "same"]))
def test_pages_lose_and_repeat_no_line(before: Any, meanwhile: Any, limit: int, pattern: str) -> None:
    services = FakeServices()
    query = {"limit": limit, "filterPattern": pattern}
    for stream, at, count, line in before:
        services.write(stream, at, *[line] * count)
    there = {event["eventId"] for event in services.search(filterPattern=pattern)["events"]}
    assert len(there) == sum(count for *_, count, line in before if pattern in line)
    page = services.search(**query)
    for stream, at, count, line in meanwhile:
        services.write(stream, at, *[line] * count)
    found = [event["eventId"] for event in page["events"]]
    while "nextToken" in page:
        assert len(page["events"]) == limit
        page = services.search(**query, nextToken=page["nextToken"])
        found += [event["eventId"] for event in page["events"]]
    assert len(found) == len(set(found))
    assert there <= set(found)
    assert {frozenset(event) for event in page["events"]} <= {
        frozenset({"timestamp", "message", "ingestionTime", "eventId", "logStreamName"})
    }


@pytest.mark.parametrize("token", ["x", "1/2", "1/2/x", "f/7/1/2"])
def test_a_token_of_nobody_is_refused(token: str) -> None:
    assert FakeServices().search(nextToken=token) == {"error": "InvalidParameterException"}
