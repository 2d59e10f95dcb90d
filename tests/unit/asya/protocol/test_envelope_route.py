"""protocol §1: the route shift."""

import pytest

from asya.protocol.envelope import Route


@pytest.mark.rule("1.route.prev", "1.shift")
@pytest.mark.parametrize(
    ("before", "ahead", "after"),
    [
        (Route(("prep",), "infer", ("post", "store")), None, Route(("prep", "infer"), "post", ("store",))),
        (Route(("prep",), "infer", ("post",)), (), Route(("prep", "infer"), "", ())),
        (Route((), "infer", ()), None, Route(("infer",), "", ())),
        (Route((), "infer", ("post",)), ("x", "y", "z"), Route(("infer",), "x", ("y", "z"))),
    ],
)
def test_the_shift(before: Route, ahead: tuple[str, ...] | None, after: Route) -> None:
    assert before.shifted(ahead) == after
    assert after.position == before.position + 1
