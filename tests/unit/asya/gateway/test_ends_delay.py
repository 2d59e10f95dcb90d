"""protocol §13: when ends may wait for longer than a minute."""

from datetime import timedelta

import pytest

from asya.gateway.ends_delay import EndsMark, delay
from tests.doubles.tasks import START


def ago(seconds: float | None) -> object:
    return None if seconds is None else START - timedelta(seconds=seconds)


@pytest.mark.rule("13.backstop.ends")
@pytest.mark.parametrize(
    ("waiting", "fresh", "late", "expected"),
    [
        (0, None, None, "none"),  # an idle mesh leaves no marks
        (0, 3600, 1, "none"),
        (1, None, None, "unknown"),
        (1, 61, None, "unknown"),  # broken: nobody consumes the queue
        (1, 59, None, "none"),
        (9, 1, 30, "late"),  # a backlog shrinks, or a message is kept
        (9, 1, 180, "late"),
        (9, 1, 181, "none"),
        (9, 61, 181, "unknown"),
    ],
)
def test_the_delay_of_ends(waiting: int, fresh: float | None, late: float | None, expected: str) -> None:
    mark = EndsMark(ago(fresh), ago(late))  # type: ignore[arg-type]
    assert delay(mark, waiting=waiting, now=START) == expected
