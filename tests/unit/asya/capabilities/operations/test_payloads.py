"""Which payloads of a task are kept before and after each hop."""

import pytest

from asya.capabilities.operations.payloads import (
    TEXT_LIMIT,
    Copies,
    Copy,
    choose_copies,
    kept_hops,
    last_hop,
    payload_text,
    read_hop,
)
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Route

ROUTE = Route(("prep", "infer", "post"), "", ())


def copy(generation: int | None = 0, kind: str = "input", size: int = 10) -> Copy:
    return Copy(f"s3://b/{kind}/{generation}", size, kind, generation)  # type: ignore[arg-type]


@pytest.mark.rule("13.payloads")
def test_an_input_is_also_the_payload_after_the_hop_before() -> None:
    copies = Copies({1: copy(size=7)}, copy(size=9), last_hop(ROUTE))
    assert [(hop.hop, hop.actor, hop.before, hop.after, hop.size, hop.copy) for hop in kept_hops(copies, ROUTE)] == [
        (0, "prep", False, True, 7, None),
        (1, "infer", True, False, 7, "input"),
        (2, "post", False, True, 9, None),
    ]


def test_the_input_of_an_earlier_generation_does_not_follow_a_redriven_hop() -> None:
    copies = Copies({1: copy(1), 2: copy(0)})
    assert [(hop.hop, hop.generation, hop.before, hop.after) for hop in kept_hops(copies, ROUTE)] == [
        (0, 1, False, True),
        (1, 1, True, False),
        (2, 0, True, False),
    ]


def test_a_checkpoint_has_no_generation_and_follows_any_hop() -> None:
    assert Copies({1: copy(3), 2: copy(None, "checkpoint")}).after(1) == copy(None, "checkpoint")


def test_the_latest_generation_is_chosen_and_an_input_before_a_dead_letter() -> None:
    found = [
        (1, copy(0)), (1, copy(1, "dead_letter")), (1, copy(None, "checkpoint")),
        (2, copy(0)), (2, copy(0, "dead_letter")),
    ]  # fmt: skip
    assert choose_copies(found) == {1: copy(1, "dead_letter"), 2: copy(0)}


def test_a_route_that_ends_early_ends_at_its_current_actor() -> None:
    assert last_hop(Route(("prep",), "infer", ("post",))) == 1
    assert last_hop(ROUTE) == 2


@pytest.mark.parametrize(("text", "status"), [("x", 400), ("-1", 400), ("1234567", 400), ("²", 400), ("7", 404)])
def test_a_hop_without_a_kept_payload_is_refused(text: str, status: int) -> None:
    with pytest.raises(ApiError) as refused:
        read_hop(text, Copies({1: copy()}))
    assert (refused.value.status, refused.value.field) == (status, "hop")


def test_a_long_payload_is_cut_between_characters() -> None:
    text = payload_text(b'"' + "é".encode() * TEXT_LIMIT + b'"', "s3://b/k")
    assert (text.truncated, len(text.text.encode()), text.size) == (True, TEXT_LIMIT - 1, 2 * TEXT_LIMIT + 2)
    assert not payload_text(b"{}", "s3://b/k").truncated
