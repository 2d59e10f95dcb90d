"""The lines of one function are found in its own log group, and in that of the crew."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya import registry
from asya.capabilities.operations.aws.logs import FunctionLogs
from asya.manifest import ActorFunction, Function
from asya.protocol import names
from asya.protocol.times import parse_time
from tests.doubles.log_lines import FakeLogs
from tests.doubles.times import TIMES

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

NOW = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)


def found(client: FakeLogs, function: str, since: timedelta, pattern: str = "") -> list[str]:
    logs = FunctionLogs(cast("CloudWatchLogsClient", client), "shop", lambda: NOW)
    return [each.line for each in logs.lines(function, (NOW - since).timestamp(), pattern)]


def has_no_handler(declaration: Function | ActorFunction) -> bool:
    return isinstance(declaration, Function) or declaration.queues is not None


def test_the_crew_are_the_functions_of_the_product_without_handlers() -> None:
    product = registry.PRODUCT
    of_kinds = product.crew_of_kinds | product.on_demand
    declared = product.functions | {name: product.actor_functions[kind] for name, kind in of_kinds.items()}
    crew = {name for name, each in declared.items() if has_no_handler(each)}
    assert crew | {names.GATEWAY_LIVE} == names.CREW
    assert {names.function_name("shop", each) for each in names.CREW}.isdisjoint(
        {names.log_group("shop", each).rpartition("/")[2] for each in names.CREW}
    )


@pytest.mark.parametrize("pattern", ["", '"about"'])
@pytest.mark.parametrize("days", [1, 5, 12])
def test_each_function_has_its_own_lines(days: int, pattern: str) -> None:
    client = FakeLogs("shop")
    functions = ["bill", "bill-2", *sorted(names.CREW)]
    for function in functions:
        for hours in (1, 23 * days):
            at = NOW - timedelta(hours=hours)
            for began in (at, at - timedelta(hours=12)):
                client.write(function, at, {"message": f"{hours} about {function} since {began:%d.%H}"}, began)
    for function in functions:
        lines = [json.loads(line)["message"] for line in found(client, function, timedelta(days=days), pattern)]
        assert len(lines) == len(set(lines))
        assert {line.split(" since ")[0] for line in lines} == {f"{hours} about {function}" for hours in (1, 23 * days)}


def test_pages_of_a_day_are_read_to_their_end() -> None:
    client = FakeLogs("shop")
    for second in range(30):
        client.write(names.SINK, NOW - timedelta(seconds=second), f"{second}")
    logs = FunctionLogs(cast("CloudWatchLogsClient", client), "shop", lambda: NOW)
    lines, token, pages = list[str](), "", 0
    while True:
        page = logs.page(names.SINK, NOW.timestamp() - 60, token=token, limit=7)
        lines, pages = [*lines, *(each.line for each in page.lines)], pages + 1
        if page.token is None:
            break
        token = page.token
    assert sorted(map(int, lines)) == list(range(30))
    assert pages >= 5


@given(since=TIMES, token=st.sampled_from(["", "1 ", "99 "]), function=st.sampled_from(["bill", names.SINK]))
def test_lines_since_any_time_can_be_asked_for(since: str, token: str, function: str) -> None:
    client = FakeLogs("shop")
    client.write(function, NOW, "one")
    logs = FunctionLogs(cast("CloudWatchLogsClient", client), "shop", lambda: NOW)
    start = parse_time(since).timestamp()
    page = logs.page(function, start, token=token)
    assert {each.line for each in page.lines} <= {"one"}
    assert token or start > NOW.timestamp() or "one" in [each.line for each in logs.lines(function, start)]


@pytest.mark.parametrize("token", ["999 ", "-1 ", "one ", "99999999999 ", " "])
def test_a_forged_position_is_somewhere_in_the_lines(token: str) -> None:
    client = FakeLogs("shop")
    client.write(names.SINK, NOW, "one")
    page = FunctionLogs(cast("CloudWatchLogsClient", client), "shop", lambda: NOW).page(
        names.SINK, NOW.timestamp() - 60, token=token
    )
    assert {each.line for each in page.lines} <= {"one"}
