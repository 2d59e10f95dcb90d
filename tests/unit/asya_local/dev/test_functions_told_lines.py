"""The lines of a mesh of `asya dev` that the gateway's calls read."""

from datetime import timedelta

from asya_local.dev.functions import ToldLines
from tests.doubles.tasks import START, at


def test_lines_of_an_actor_come_in_pages_and_everything_is_passed_on() -> None:
    told: list[str] = []
    times = iter([START, at(1), at(2), at(3)])
    lines = ToldLines(lambda: next(times))
    tell = lines.recording(lambda _, text: told.append(text))
    for text in (
        "bill: order-7 took 2 ms",
        "order-7 failed at bill: KeyError: 'x'",
        "ship: order-7 took 1 ms",
        "bill: order-8",
    ):
        tell("call", text)
    assert len(told) == 4
    page = lines.page("bill", START.timestamp(), limit=1)
    assert ([line.line for line in page.lines], page.token) == (["bill: order-7 took 2 ms"], "1")
    rest = lines.page("bill", START.timestamp(), token=page.token or "", limit=1)
    assert ([line.line for line in rest.lines], rest.token) == (["bill: order-8"], None)
    assert [line.id for line in lines.page("bill", START.timestamp(), '"order-8"').lines] == ["3"]
    assert lines.page("bill", (START + timedelta(seconds=9)).timestamp()).lines == []
