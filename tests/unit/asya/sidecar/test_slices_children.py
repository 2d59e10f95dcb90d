"""How many children one hop may give (`protocol §1.max_children`)."""

from collections.abc import Iterator
from itertools import islice

import pytest

from asya.protocol.envelope import Frame
from asya.sidecar.slices import TooManyChildrenError, bounded, check_count
from tests.doubles.envelopes import hop, raw

FRAME = Frame(raw({}))


@pytest.mark.rule("1.max_children")
@pytest.mark.parametrize(("frames", "limit"), [(0, 1), (1, 1), (2, 1), (6, 5), (10_001, 10_000)])
def test_1_max_children_frame_0_is_no_child(frames: int, limit: int) -> None:
    working = hop(max_children=limit)
    check_count(working, frames)
    assert len(list(bounded(working, iter([FRAME] * frames)))) == frames


@pytest.mark.rule("1.max_children")
def test_1_max_children_the_error_names_actor_number_and_line() -> None:
    with pytest.raises(TooManyChildrenError) as caught:
        check_count(hop(max_children=5), 13)
    assert caught.value.error.type == "MaxChildren"
    assert caught.value.error.message == (
        "actor 'infer' gave 12 children in one hop; this mesh allows 5; "
        "to allow more, write in the mesh file: max_children: 12"
    )


@pytest.mark.rule("1.max_children")
def test_1_max_children_an_endless_handler_is_stopped() -> None:
    given = 0

    def endless() -> Iterator[Frame]:
        nonlocal given
        while True:
            given += 1
            yield FRAME

    frames = bounded(hop(max_children=3), endless())
    assert len(list(islice(frames, 4))) == 4
    with pytest.raises(TooManyChildrenError) as caught:
        next(frames)
    assert "gave more than 3 children" in str(caught.value)
    assert "write in the mesh file: max_children: 6" in str(caught.value)
    assert given == 5
