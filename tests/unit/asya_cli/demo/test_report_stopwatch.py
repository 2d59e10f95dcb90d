"""The demo's stopwatch."""

from io import StringIO

import pytest
from rich.console import Console

from asya_cli.demo.report import Stopwatch


def printed(part: object) -> str:
    output = StringIO()
    Console(file=output, width=160).print(part)
    return output.getvalue()


def test_the_stopwatch_adds_up_steps_but_not_their_parts() -> None:
    watch = Stopwatch()
    with watch.lap("first"):
        pass
    watch.note("part of it", 100.0)
    with pytest.raises(ValueError, match="also measured"), watch.lap("second"):
        raise ValueError("also measured")
    assert [lap.name for lap in watch.laps] == ["first", "part of it", "second"]
    assert watch.total < 10
    assert all(word in printed(watch.table()) for word in ("first", "part of it", "total"))
